"""One table of metrics: functions of labels in {0, 1} and predicted p(y = 1), both [N]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

#: Probabilities are kept this far from 0 and 1 where a logarithm is taken.
CLIP = 1e-15
#: Bins of the expected calibration error, of equal width.
ECE_BINS = 15


def error(y: AnyNDArray, p: AnyNDArray) -> float:
    """Mean of [y != (p > 1/2)]: fraction in [0, 1], smaller is better; p = 1/2 counts as 0."""
    return float(np.mean((p > 0.5) != (y == 1)))


def brier(y: AnyNDArray, p: AnyNDArray) -> float:
    """Brier score, mean of (p - y)^2: in [0, 1], smaller is better; always p = 1/2 has 1/4."""
    return float(brier_score_loss(y, p))


def nll(y: AnyNDArray, p: AnyNDArray) -> float:
    """
    Negative log-likelihood, mean of -log p(y): nats per row, at least 0, smaller is better;
    always p = 1/2 has log 2. Probabilities are clipped at 1e-15, so that one row costs at most
    34.5 nats.
    """
    return float(log_loss(y, np.clip(p, CLIP, 1 - CLIP), labels=[0, 1]))


def ece(y: AnyNDArray, p: AnyNDArray) -> float:
    """
    Expected calibration error, sum over bins b of |accuracy_b - confidence_b| N_b / N: in [0, 1],
    smaller is better. Confidence is max(p, 1 - p); 15 bins of equal width on [0, 1], by
    `tfp.stats.expected_calibration_error`.
    """
    p = np.clip(p, CLIP, 1 - CLIP)
    logits = np.stack([np.log1p(-p), np.log(p)], axis=-1).astype(np.float32)  # it takes no float64
    labels = np.asarray(y, np.int32)
    return float(tfp.stats.expected_calibration_error(ECE_BINS, logits, labels_true=labels))


def auc(y: AnyNDArray, p: AnyNDArray) -> float:
    """
    Area under the ROC curve, the chance that a row of class 1 has a larger p than one of class 0:
    in [0, 1], greater is better; NaN where only one class is present.
    """
    return float(roc_auc_score(y, p)) if len(np.unique(y)) == 2 else float("nan")


@dataclass(frozen=True)
class Metric:
    """
    :ivar label: heading in a table.
    :ivar function: of y [N] in {0, 1} and p [N].
    :ivar unit: of its value.
    :ivar greater_is_better: its orientation.
    """

    label: str
    function: Callable[[AnyNDArray, AnyNDArray], float]
    unit: str
    greater_is_better: bool = False


METRICS = {
    "error": Metric("error", error, "fraction"),
    "brier": Metric("Brier", brier, "squared probability"),
    "nll": Metric("NLL", nll, "nats per row"),
    "ece": Metric("ECE", ece, "probability"),
    "auc": Metric("AUC", auc, "fraction", greater_is_better=True),
}


def evaluate(y: AnyNDArray, p: AnyNDArray) -> dict[str, float]:
    """
    :param y: [N] in {0, 1}.
    :param p: [N], predicted p(y = 1).
    :return: value by name, for all of `METRICS`.
    :raise ValueError: if y and p differ in length, or p are not probabilities.
    """
    y, p = np.asarray(y), np.asarray(p, np.float64)
    if y.shape != p.shape or y.ndim != 1:
        raise ValueError(f"y and p must have one equal dimension, got {y.shape} and {p.shape}")
    if not ((p >= 0) & (p <= 1)).all():  # NaN fails too
        raise ValueError("predictions must be probabilities in [0, 1], without NaN")
    return {name: metric.function(y, p) for name, metric in METRICS.items()}
