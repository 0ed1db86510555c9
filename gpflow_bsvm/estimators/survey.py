"""What a classifier wants to know of rows that are not in memory, and how its model sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

from ..data.batch import Batch
from ..data.checks import as_matrix, check_inputs
from ..data.dask_data import dask_reader, is_dask
from ..data.opening import open_source
from ..data.passes import sum_over
from ..data.pieces import Origin
from ..data.prefetch import closed_at_end
from ..data.readers import Reader
from ..data.sources import ArraySource, Remote, Source
from ..inference.history import progress_bar
from .inputs import check_classes, number, refuse_beside_source
from .specification import Data
from .training import few_of_each_first

#: Everything but q is learned from so many rows, drawn at random.
SAMPLE_ROWS = 20_000
CHUNK_ROWS = 2**14
#: More kinds of labels are no classes.
_MOST_CLASSES = 1000


def source_of(X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """
    :return: rows with their labels that are read piece by piece; None for arrays in memory.
    :raise ValueError: for labels or weights beside such rows that have their own.
    """
    if is_dask(X):
        return dask_reader(X, y, sample_weight)
    if not isinstance(X, (Reader, Source, tf.data.Dataset)):
        return None
    refuse_beside_source(y, sample_weight)
    return X


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

    :raise ValueError: for one class only, a class all of whose rows have weight 0, or more labels
        than classes can be.
    """
    seen = _Seen(seed)
    with progress_bar(source.known_rows, "survey", progress, "row") as bar:

        def look(batch: Batch) -> tf.Tensor:
            seen.look(batch.X.numpy(), batch.Y.numpy()[:, 0], batch.weight.numpy()[:, 0])
            bar.update(len(batch.Y))
            return tf.reduce_sum(batch.weight)

        total = float(sum_over(source.here(), look))
    values = np.sort(np.array(list(seen.counts)))
    check_classes(np.searchsorted(values, list(seen.weighed)), values)
    sample = seen.kept[np.argsort(seen.kept[:, 0])]
    columns = np.ascontiguousarray(sample[:, 3:]), sample[:, 1:2], sample[:, 2]
    return Survey(values, np.array([seen.counts[v] for v in values]), seen.scaler, columns, total)


class _Seen:
    """What the rows until now say."""

    def __init__(self, seed: int) -> None:
        self._rng, self.scaler = np.random.default_rng(seed), StandardScaler()
        self.counts: dict[float, int] = {}
        self.weighed: set[float] = set()  #: labels of rows that count
        self.kept: AnyNDArray = np.empty((0, 0))  #: random number, y, weight and X of some rows

    def look(self, X: AnyNDArray, y: AnyNDArray, weight: AnyNDArray) -> None:
        """See some more rows."""
        for value, count in zip(*np.unique(y, return_counts=True)):
            self.counts[value] = self.counts.get(value, 0) + int(count)
        if len(self.counts) > _MOST_CLASSES:
            raise ValueError(f"there are more than {_MOST_CLASSES} labels: classes are expected")
        X, y, weight = (column[weight > 0] for column in (X, y, weight))
        if len(y):
            self.weighed |= set(y)
            self.scaler.partial_fit(X, sample_weight=weight)
            rows = np.column_stack([self._rng.random(len(y)), y, weight, X])
            self.kept = _smallest(np.concatenate([self.kept, rows]) if len(self.kept) else rows)


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


class Prepared(Source):
    """The rows of a source as a classifier's model sees them: scaled, with labels 0..C-1."""

    def __init__(
        self,
        source: Source,
        scaler: StandardScaler | None,
        values: AnyNDArray | None = None,
        weights: AnyNDArray | None = None,
    ) -> None:
        """
        :param values: [C], labels as the source has them, sorted; None: no label is looked at.
        :param weights: [C], of rows of these.
        """
        self.source, self._how = source, (scaler, values, weights)
        self.indexed, self.counted = source.indexed, source.counted
        self.row_bytes, self.ordered = source.row_bytes, source.ordered

    @property
    def num_rows(self) -> int:  # type: ignore[override]
        """:return: N."""
        return self.source.num_rows

    @property
    def marks(self) -> Mapping[str, str]:
        """See `Source`."""
        return self.source.marks

    def chunks(self) -> Iterator[Batch]:
        """See `Source`."""
        return self._each(self.source.chunks())

    def scaled(self, factor: float) -> Prepared:
        """See `Source`."""
        return Prepared(self.source.scaled(factor), *self._how)

    def gather(self, index: AnyNDArray) -> tuple[Batch, AnyNDArray]:
        """See `Source`."""
        rows, where = self.source.gather(index)
        return self._prepare(rows), where

    def stream(self, position: int, batch_size: int) -> Iterator[Batch]:
        """See `Source`."""
        return self._each(self.source.stream(position, batch_size))

    def _each(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        with closed_at_end(batches) as open_batches:
            for batch in open_batches:
                yield self._prepare(batch)

    @property
    def remote(self) -> Remote | None:  # type: ignore[override]
        """See `Source`."""
        remote = self.source.remote
        return None if remote is None else remote.seen(partial(_prepared, *self._how))

    def _prepare(self, batch: Batch) -> Batch:
        return _prepared(*self._how, batch)


def _prepared(
    scaler: StandardScaler | None,
    values: AnyNDArray | None,
    weights: AnyNDArray | None,
    batch: Batch,
) -> Batch:
    X = batch.X if scaler is None else tf.constant(scaler.transform(batch.X), batch.X.dtype)
    if values is None:
        return batch._replace(X=X)
    index = number(batch.Y.numpy(), values)
    weight = batch.weight if weights is None else batch.weight * weights[index]
    return Batch(X, tf.constant(index, batch.Y.dtype), weight)


def in_memory(data: Data) -> Source:
    """:return: a source of rows that are checked, scaled and numbered."""
    X, Y, weight = data
    return ArraySource(X, Y, weight[:, None], CHUNK_ROWS)


def open_rows(data: Any, rows: Rows) -> Source:
    """:return: a source of what `source_of` has found."""
    return open_source(data, rows, CHUNK_ROWS)
