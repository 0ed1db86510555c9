"""What a classifier wants to know of rows that are not in memory."""

from __future__ import annotations

import copy
import operator
from collections import Counter
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from sklearn.preprocessing import StandardScaler

from ..data.batch import Batch
from ..data.checks import as_matrix, check_inputs
from ..data.passes import sum_over
from ..data.pieces import Origin
from ..data.sampling import random_keys
from ..data.sources import Source
from ..files.labels import MOST_CLASSES
from ..inference.history import progress_bar
from .inputs import check_classes
from .training import few_of_each_first

#: Everything but q is learned from so many rows, drawn at random.
SAMPLE_ROWS = 20_000


class Rows(NamedTuple):
    """What is asked of rows before there is a model."""

    labelled: bool = True
    num_columns: int | None = None  #: that they must have, if that is known

    def rows(self, X: Any, Y: Any, origin: Origin | None) -> tuple[Any, AnyNDArray]:
        """:return: X [n, D] and Y [n, 1], or of no columns where labels play no part."""
        where = origin or Origin()
        X = check_inputs(X, where)
        if self.num_columns not in (None, X.shape[1]):
            raise ValueError(f"X has {X.shape[1]} columns, the training data {self.num_columns}")
        if not self.labelled:
            return X, np.zeros((len(X), 0), X.dtype)
        if Y is None:
            raise ValueError("there are no labels: files need target=..., the name of a column")
        Y = as_matrix(Y, "Y", where)
        if Y.shape != (len(X), 1):
            raise ValueError(f"Y must be one column of {len(X)} labels, got shape {Y.shape}")
        return X, Y

    def labels(self, Y: AnyNDArray) -> None:
        """Nothing: `survey` looks at all of them."""


class Moments(NamedTuple):
    """Means and variances of the columns of weighted rows."""

    weight: float
    mean: AnyNDArray  #: [D]
    var: AnyNDArray  #: [D]

    @staticmethod
    def of(X: AnyNDArray, weight: AnyNDArray) -> Moments:
        """:return: the moments of X [n, D] with weights [n]; zeros where there are no rows."""
        total = float(weight.sum())
        if not total:
            return Moments(0.0, np.zeros(X.shape[1]), np.zeros(X.shape[1]))
        mean = weight @ X / total
        return Moments(total, mean, weight @ (X - mean) ** 2 / total)

    def merged(self, other: Moments) -> Moments:
        """:return: the moments of both (Chan, Golub & LeVeque 1979)."""
        total = self.weight + other.weight
        part = other.weight / total if total else 0.0
        step = other.mean - self.mean
        var = (1 - part) * self.var + part * other.var + part * (1 - part) * step**2
        return Moments(total, self.mean + part * step, var)


class Survey(NamedTuple):
    """What one pass over all rows has found."""

    values: AnyNDArray  #: [C], labels as the source has them, sorted
    counts: AnyNDArray  #: [C]
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
        """:return: as fitted to all rows."""
        scaler = StandardScaler()
        scaler.n_features_in_, scaler.n_samples_seen_ = len(self.mean), np.float64(self.weight)
        scaler.mean_, scaler.var_ = self.mean, self.var
        rounding = self.weight * np.finfo(float).eps  # constant columns: scikit-learn's rule
        constant = self.var <= rounding * self.var + (rounding * self.mean) ** 2
        scaler.scale_ = np.where(constant, 1.0, np.sqrt(self.var))
        return scaler


def survey(
    source: Source, seed: int, progress: bool | None = False, classes: bool = True
) -> Survey:
    """
    One pass: labels, means and deviations of columns, and rows at random, some of every class. A
    row of weight 0 is counted, and has no part in anything else.

    :param classes: whether labels are those of classes; else all rows are of one.
    :raise ValueError: for one class only, a class all of whose rows have weight 0, or labels that
        are no classes.
    """
    with progress_bar(source.known_rows, "survey", progress, "row") as bar:

        def look(batch: Batch) -> _Seen:
            bar.update(len(batch.Y))
            return _Seen(seed, classes, batch)

        elsewhere = source.remote is not None  # a bar counts what is read here
        seen: _Seen = sum_over(
            source, partial(_Seen, seed, classes) if elsewhere else look, add=operator.add
        )
    values = np.sort(np.array(list(seen.counts)))
    if classes:
        check_classes(np.searchsorted(values, list(seen.weighed)), values)
    sample = seen.kept[np.argsort(seen.kept[:, 0])]
    columns = np.ascontiguousarray(sample[:, 4:]), sample[:, 3:4], sample[:, 2]
    counts = np.array([seen.counts[value] for value in values])
    return Survey(values, counts, *seen.moments, columns)


class _Seen:
    """What some rows say."""

    def __init__(self, seed: int, classes: bool, batch: Batch) -> None:
        X, Y, weights = (np.asarray(column) for column in batch)
        weight, keys = weights[:, 0], random_keys(batch, seed)
        y = Y[:, :1] if Y.shape[1] else np.zeros((len(X), 1))  # of rows without labels
        label = y[:, 0] if classes else np.zeros(len(y))
        self.counts = Counter(dict(zip(*np.unique(label, return_counts=True))))
        rows = np.column_stack([keys, label, weight, y, X])[weight > 0]
        self.weighed = set(rows[:, 1])  #: labels of rows that count
        self.moments = Moments.of(rows[:, 4:], rows[:, 2])
        self.kept = _smallest(rows)  #: some of them
        self._check()

    def _check(self) -> None:
        if len(self.counts) > MOST_CLASSES:
            raise ValueError(
                f"there are more than {MOST_CLASSES} labels: classes are expected; is target the "
                "right column?"
            )

    def __add__(self, other: _Seen) -> _Seen:
        both = copy.copy(self)
        both.counts, both.weighed = self.counts + other.counts, self.weighed | other.weighed
        both.moments = self.moments.merged(other.moments)
        both.kept = _smallest(np.concatenate([self.kept, other.kept]))
        both._check()
        return both


def _smallest(rows: AnyNDArray) -> AnyNDArray:
    """:return: those of the smallest numbers in their first column, some of every label."""
    rows = rows[np.argsort(rows[:, 0])]
    return rows[few_of_each_first(rows[:, 1])[:SAMPLE_ROWS]]
