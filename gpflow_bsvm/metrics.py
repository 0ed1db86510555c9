"""Metrics, which are functions of labels y [N] in 0..C-1 and probabilities P [N, C], or [N] for two
classes: p(y = 1). They raise ValueError if shapes do not match, or for other labels or numbers."""

from __future__ import annotations

from . import quiet  # isort: skip  # noqa: F401 - imports GPflow before others do

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray
from sklearn.metrics import roc_auc_score

from .likelihoods.labels import with_both_classes

#: Before taking logarithms, probabilities are clipped to this distance from 0 and 1.
CLIP = 1e-15
#: Bins of the expected calibration error, of equal width.
ECE_BINS = 15
#: Largest allowed difference between a row's sum of probabilities and 1.
_ROW_SUM = 1e-6


Loss = Callable[[AnyNDArray, AnyNDArray], AnyNDArray]
#: The losses of rows, [N], whose means are the metrics of these names.
LOSSES: dict[str, Loss] = {
    "error": lambda y, P: (P.argmax(axis=1) != y).astype(float),
    "brier": lambda y, P: np.square(P - np.eye(P.shape[1])[y]).sum(axis=1) / 2,
    "nll": lambda y, P: -np.log(np.clip(P[np.arange(len(y)), y], CLIP, 1 - CLIP)),
}


def error(y: AnyNDArray, P: AnyNDArray) -> float:
    """
    Fraction of errors, the mean of [y != argmax_c p_c]: in [0, 1], smaller is better. Ties go to
    the first class: p(y = 1) = 1/2 thus predicts class 0.
    """
    return _mean("error", y, P)


def brier(y: AnyNDArray, P: AnyNDArray) -> float:
    """
    Half the Brier score of all classes, the mean of sum_c (p_c - [y = c])^2 / 2: in [0, 1], smaller
    is better. For two classes it is the mean of (p(y = 1) - y)^2; a constant p = 1/2 scores 1/4.
    """
    return _mean("brier", y, P)


def nll(y: AnyNDArray, P: AnyNDArray) -> float:
    """
    Negative log-likelihood, the mean of -log p_y, in nats per row: at least 0, smaller is better; a
    constant p = 1/C scores log C. Probabilities are clipped at 1e-15, so that a row costs at most
    34.5 nats.
    """
    return _mean("nll", y, P)


def _mean(name: str, y: AnyNDArray, P: AnyNDArray) -> float:
    y, P = check_probabilities(y, P)
    return float(LOSSES[name](y, P).mean())


def ece(y: AnyNDArray, P: AnyNDArray) -> float:
    """
    Expected calibration error, sum over bins b of |accuracy_b - confidence_b| N_b / N: in [0, 1],
    smaller is better. Confidence is max_c p_c. There are 15 bins of equal width on [0, 1], as in
    `tfp.stats.expected_calibration_error`.
    """
    y, P = check_probabilities(y, P)
    logits = np.log(np.clip(P, CLIP, 1 - CLIP)).astype(np.float32)  # float64 is not supported
    return float(tfp.stats.expected_calibration_error(ECE_BINS, logits, labels_true=y))


def auc(y: AnyNDArray, P: AnyNDArray) -> float:
    """
    Area under the ROC curve, the probability that a row of class c has a larger p_c than a row of
    another class, averaged over c: in [0, 1], greater is better; NaN if a class is absent from y.
    With two classes, both have the same area.
    """
    y, P = check_probabilities(y, P)
    if len(np.unique(y)) < P.shape[1]:
        return float("nan")
    return float(roc_auc_score(y, P[:, 1] if P.shape[1] == 2 else P, multi_class="ovr"))


class Metric(NamedTuple):
    """A function of y [N] in 0..C-1 and P [N, C], and its description."""

    label: str  #: heading in a table
    function: Callable[[AnyNDArray, AnyNDArray], float]
    unit: str  #: range of values
    greater_is_better: bool | None = False  #: None: neither


#: All metrics by name.
METRICS = {
    "error": Metric("error", error, "fraction"),
    "brier": Metric("Brier", brier, "squared probability"),
    "nll": Metric("NLL", nll, "nats per row"),
    "ece": Metric("ECE", ece, "probability"),
    "auc": Metric("AUC", auc, "fraction", greater_is_better=True),
}


def evaluate(y: AnyNDArray, p: AnyNDArray) -> dict[str, float]:
    """
    :param y: [N] in 0..C-1.
    :param p: [N, C], or [N] for two classes: p(y = 1).
    :return: the values of all `METRICS`, by name.
    """
    return {name: metric.function(y, p) for name, metric in METRICS.items()}


class Coverage(NamedTuple):
    """Accuracy of a classifier with a reject option, for each number of rows that it answers."""

    coverage: AnyNDArray  #: [K], fraction of rows that are answered, increasing to 1
    accuracy: AnyNDArray  #: [K], fraction of correct answers
    doubt: AnyNDArray  #: [K], the largest doubt among these rows


def accuracy_against_coverage(y: AnyNDArray, p: AnyNDArray, doubt: Any = None) -> Coverage:
    """
    Evaluate a reject option that accepts rows from the smallest doubt on, equal doubts together.

    :param y: [N] in 0..C-1.
    :param p: [N, C], or [N] for two classes: p(y = 1).
    :param doubt: [N], such as `gpflow_bsvm.prediction.mutual_information`; None: 1 - max_c p_c.
    :raise ValueError: if `doubt` is not a finite number for each row.
    """
    y, P = check_probabilities(y, p)
    doubt = 1 - P.max(axis=1) if doubt is None else np.asarray(doubt, np.float64)
    if doubt.shape != y.shape or not np.isfinite(doubt).all():
        raise ValueError(f"doubt must be {len(y)} finite numbers, got shape {doubt.shape}")
    accepted, number = np.unique(doubt, return_counts=True)
    answered = np.cumsum(number)
    right = np.cumsum((P.argmax(axis=1) == y)[np.argsort(doubt, kind="stable")])[answered - 1]
    return Coverage(answered / len(y), right / answered, accepted)


def check_probabilities(y: Any, p: Any) -> tuple[AnyNDArray, AnyNDArray]:
    """
    :return: y as integers, and P [N, C].
    :raise ValueError: if shapes do not match, P does not hold probabilities, or y not classes.
    """
    y = np.asarray(y)
    p = np.asarray(p, np.float64)
    P = with_both_classes(p[:, None]) if p.ndim == 1 else p
    if y.ndim != 1 or P.ndim != 2 or P.shape[1] < 2 or len(y) != len(P) or len(y) == 0:
        raise ValueError(f"expected y [N] and p [N] or [N, C], C > 1; got {y.shape} and {p.shape}")
    if not ((P >= 0) & (P <= 1)).all():  # NaN fails too
        raise ValueError("predictions must be probabilities in [0, 1], without NaN")
    off = np.abs(P.sum(axis=1) - 1).max()
    if off > _ROW_SUM:
        raise ValueError(f"rows of probabilities must sum to 1; one is off by {off:.3g}")
    if (unknown := ~np.isin(y, np.arange(P.shape[1]))).any():
        first = y[unknown].tolist()[0]
        raise ValueError(f"labels must be integers in 0..{P.shape[1] - 1}, got {first!r}")
    return y.astype(int), P
