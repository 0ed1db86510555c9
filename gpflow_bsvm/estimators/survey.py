"""Statistics of rows that are not in memory, collected before an estimator's fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from sklearn.preprocessing import StandardScaler

from ..data.batch import Batch, Origin
from ..data.checks import as_matrix, check_inputs
from ..data.passes import sum_over
from ..data.sampling import random_keys
from ..data.sources import Source
from ..tables.labels import MOST_CLASSES
from .training import few_of_each_first

#: Number of random rows for learning everything but q.
SAMPLE_ROWS = 20_000


class Rows(NamedTuple):
    """Checks of rows before the model exists."""

    labelled: bool = True
    num_columns: int | None = None  #: required columns of X, if known

    def rows(self, X: Any, Y: Any, origin: Origin | None) -> tuple[Any, AnyNDArray]:
        """:return: X [n, D] and Y [n, 1], or [n, 0] without labels."""
        where = origin or Origin()
        X = check_inputs(X, where)
        if self.num_columns not in (None, X.shape[1]):
            raise ValueError(f"X has {X.shape[1]} columns, but training had {self.num_columns}")
        if not self.labelled:
            return X, np.zeros((len(X), 0), X.dtype)
        if Y is None:
            raise ValueError("there are no labels: files need target=..., the name of a column")
        Y = as_matrix(Y, "Y", where)
        if Y.shape != (len(X), 1):
            raise ValueError(f"Y must be one column of {len(X)} labels, got shape {Y.shape}")
        return X, Y

    def labels(self, Y: AnyNDArray) -> None:
        """Do nothing: `survey` checks all labels."""


class Survey(NamedTuple):
    """Results of one pass over all rows."""

    values: AnyNDArray  #: [C], labels as the source has them, sorted
    counts: AnyNDArray  #: [C], rows of each label
    weights: AnyNDArray  #: [C], sums of their weights
    weight: float  #: of all rows
    mean: AnyNDArray  #: [D]
    var: AnyNDArray  #: [D]
    sample: tuple[AnyNDArray, AnyNDArray, AnyNDArray]  #: X, Y and weights of some rows

    @property
    def num_rows(self) -> int:
        """:return: N."""
        return int(self.counts.sum())

    @property
    def scaler(self) -> StandardScaler:
        """:return: a scaler with the statistics of all rows."""
        scaler = StandardScaler()
        scaler.n_features_in_ = len(self.mean)
        scaler.n_samples_seen_ = np.float64(self.weight)
        scaler.mean_ = self.mean
        scaler.var_ = self.var
        rounding = self.weight * np.finfo(float).eps  # constant columns: scikit-learn's rule
        constant = self.var <= rounding * self.var + (rounding * self.mean) ** 2
        scaler.scale_ = np.where(constant, 1.0, np.sqrt(self.var))
        return scaler


def survey(source: Source, seed: int, classes: bool = True) -> Survey:
    """
    Collect labels, means and deviations of columns, and random rows, including some of every class,
    in one pass. Rows of weight 0 are only counted.

    :param classes: whether labels are classes; if not, all rows belong to one class.
    :raise ValueError: for labels that are not classes.
    """
    seen: _Seen = sum_over(source, partial(_look, seed, classes), add=_both)
    values = np.array(sorted(seen.counts))
    counts = np.array([seen.counts[value] for value in values])
    weights = np.array([seen.weights[value] for value in values])
    kept = np.asarray(seen.kept)  # clusters return tensors
    moments = map(np.asarray, seen.moments)
    rows = kept[np.argsort(kept[:, 0])]
    sample = np.ascontiguousarray(rows[:, 4:]), rows[:, 3:4], rows[:, 2]
    (weight,), (mean,), (var,) = moments
    return Survey(values, counts, weights, float(weight), mean, var, sample)


class _Seen(NamedTuple):
    """The survey of some rows."""

    counts: Counter[float]  #: of each label
    weights: Counter[float]  #: of the rows of each label
    moments: Sequence[AnyNDArray]  #: weight [1], mean [1, D] and variance [1, D]
    kept: AnyNDArray  #: a sample: random numbers, labels, weights, y, X


def _look(seed: int, classes: bool, batch: Batch) -> _Seen:
    X, Y, weight = map(np.asarray, batch)
    y = Y[:, :1] if Y.shape[1] else np.zeros((len(X), 1))  # of rows without labels
    label = y if classes else np.zeros_like(y)
    rows = np.column_stack([random_keys(batch, seed), label, weight, y, X])[weight[:, 0] > 0]
    values = rows[:, 4:]
    found, index, numbers = np.unique(label, return_inverse=True, return_counts=True)
    counts = Counter(dict(zip(found, numbers)))
    weights = Counter(dict(zip(found, np.bincount(index.ravel(), weight[:, 0]))))
    moments = rows[:, 2], values, np.zeros_like(values)
    return _seen(counts, weights, moments, rows)


def _both(one: _Seen, other: _Seen) -> _Seen:
    moments = [np.concatenate(both) for both in zip(one.moments, other.moments)]
    kept = np.concatenate([one.kept, other.kept])
    return _seen(one.counts + other.counts, one.weights + other.weights, moments, kept)


def _seen(
    counts: Counter[float],
    weights: Counter[float],
    moments: Sequence[AnyNDArray],
    rows: AnyNDArray,
) -> _Seen:
    """
    :param moments: weights [K], means [K, D] and variances [K, D] of parts of the rows.
    :param rows: rows; the rows with the smallest keys are kept, with some of every label.
    """
    if len(counts) > MOST_CLASSES:
        raise ValueError(
            f"there are more than {MOST_CLASSES} labels: classes are expected; is target the "
            "right column?"
        )
    weight, means, variances = moments
    total = weight.sum() or 1.0
    mean = weight @ means / total
    var = weight @ (variances + (means - mean) ** 2) / total
    rows = rows[np.argsort(rows[:, 0])]
    some = few_of_each_first(rows[:, 1])[:SAMPLE_ROWS]
    return _Seen(counts, weights, (weight.sum(keepdims=True), mean[None], var[None]), rows[some])
