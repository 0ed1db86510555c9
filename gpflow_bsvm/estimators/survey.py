"""What a classifier wants to know of rows that are not in memory."""

from __future__ import annotations

import copy
import operator
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

from ..data.batch import Batch
from ..data.checks import as_matrix, check_inputs
from ..data.passes import sum_over
from ..data.pieces import Origin
from ..data.prefetch import closed_at_end
from ..data.sampling import random_keys
from ..data.sources import Source
from ..files.labels import MOST_CLASSES, check_are_classes
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


class Survey(NamedTuple):
    """What one pass over all rows has found."""

    values: AnyNDArray  #: [C], labels as the source has them, sorted
    counts: AnyNDArray  #: [C]
    scaler: StandardScaler
    sample: tuple[AnyNDArray, AnyNDArray, AnyNDArray]  #: X, Y and weights of some rows
    weight: float  #: of all rows

    @property
    def num_rows(self) -> int:
        """:return: N."""
        return int(self.counts.sum())

    def content(self) -> dict[str, Any]:
        """:return: all of it as numbers and arrays."""
        return {**self._asdict(), "scaler": dict(vars(self.scaler))}

    @staticmethod
    def of(content: dict[str, Any]) -> Survey:
        """:return: what `content` was made of."""
        scaler = StandardScaler()
        vars(scaler).update(content["scaler"])
        return Survey(**{**content, "scaler": scaler})


def survey(source: Source, seed: int, progress: bool | None = False) -> Survey:
    """
    One pass: labels, means and deviations of columns, and rows at random, some of every class. A
    row of weight 0 is counted, and has no part in anything else.

    :raise ValueError: for one class only, a class all of whose rows have weight 0, or labels that
        are no classes.
    """
    with progress_bar(source.known_rows, "survey", progress, "row") as bar:
        seen: _Seen = sum_over(_Watched(source, bar), partial(_Seen, seed), add=operator.add)
    values = np.sort(np.array(list(seen.counts)))
    check_classes(np.searchsorted(values, list(seen.weighed)), values)
    sample = seen.kept[np.argsort(seen.kept[:, 0])]
    columns = np.ascontiguousarray(sample[:, 3:]), sample[:, 1:2], sample[:, 2]
    counts = np.array([seen.counts[value] for value in values])
    check_are_classes(values, int(counts.sum()), "the column of labels")
    return Survey(values, counts, seen.scaler, columns, seen.weight)


class _Watched(Source):
    """A source whose chunks a progress bar counts, where they are read here."""

    def __init__(self, source: Source, bar: Any) -> None:
        self._source, self._bar, self.remote = source, bar, source.remote

    @property
    def num_rows(self) -> int:  # type: ignore[override]
        """:return: N."""
        return self._source.num_rows

    def chunks(self) -> Iterator[Batch]:
        """See `Source`."""
        with closed_at_end(self._source.chunks()) as batches:
            for batch in batches:
                yield batch
                self._bar.update(len(batch.Y))


class _Seen:
    """What some rows say."""

    def __init__(self, seed: int, batch: Batch) -> None:
        X, Y, weights = (np.asarray(column) for column in batch)
        y, weight, keys = Y[:, 0], weights[:, 0], random_keys(batch, seed)
        self.weight, self.scaler = float(weight.sum()), StandardScaler()
        self.counts = Counter(dict(zip(*np.unique(y, return_counts=True))))
        rows = np.column_stack([keys, y, weight, X])[weight > 0]
        self.weighed = set(rows[:, 1])  #: labels of rows that count
        if len(rows):
            self.scaler.partial_fit(rows[:, 3:], sample_weight=rows[:, 2])
        self.kept = _smallest(rows)  #: some of them
        self._check()

    def _check(self) -> None:
        if len(self.counts) > MOST_CLASSES:
            raise ValueError(
                f"there are more than {MOST_CLASSES} labels: classes are expected; is target the "
                "right column?"
            )

    def __add__(self, other: _Seen) -> _Seen:
        if not other.weighed or not self.weighed:
            both = copy.copy(self if self.weighed else other)
        else:
            both = copy.copy(self)
            both.kept = _smallest(np.concatenate([self.kept, other.kept]))
            both.scaler = copy.deepcopy(self.scaler)
            # Two rows with the mean and the deviations of all that the other has seen.
            mean, deviation = other.scaler.mean_, np.sqrt(other.scaler.var_)
            half = np.full(2, np.mean(other.scaler.n_samples_seen_) / 2)
            both.scaler.partial_fit([mean - deviation, mean + deviation], sample_weight=half)
        both.weight, both.counts = self.weight + other.weight, self.counts + other.counts
        both.weighed = self.weighed | other.weighed
        both._check()
        return both


def _smallest(rows: AnyNDArray) -> AnyNDArray:
    """:return: those of the smallest numbers in their first column, some of every label."""
    rows = rows[np.argsort(rows[:, 0])]
    return rows[few_of_each_first(rows[:, 1])[:SAMPLE_ROWS]]


def class_weights(counts: AnyNDArray | None, classes: AnyNDArray, wanted: Any) -> AnyNDArray:
    """
    :param counts: [C], rows of each class; None where `wanted` is not "balanced".
    :return: [C], as scikit-learn's `class_weight` says.
    """
    if wanted is None:
        return np.ones(len(classes))
    if wanted == "balanced" and counts is not None:
        return np.asarray(counts.sum() / (len(classes) * counts))
    return np.asarray(compute_class_weight(wanted, classes=classes, y=classes))
