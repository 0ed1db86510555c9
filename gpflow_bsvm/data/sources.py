"""Where rows come from: arrays, SciPy's sparse matrices, a `tf.data.Dataset`.

To the passes and the algorithms all sources are alike (`Source`): another kind of data is another
class here, and nothing changes elsewhere.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from .batch import Batch
from .checks import check_weights
from .sparse import SparseRows

#: Rows X [n, D] and Y [n, P] as given, and the number of the first -> the same, checked.
Check = Callable[[Any, Any, int], tuple[AnyNDArray, AnyNDArray]]


class Source(ABC):
    """
    Rows, or what is made of them, in the same order each time.

    :ivar indexed: whether rows can be had by number (`gather`), in an order that does not change;
        if not, minibatches are those that the source gives (`stream`).
    """

    indexed = True
    num_rows: int  #: N, of one pass

    @abstractmethod
    def chunks(self) -> Iterator[Any]:
        """:return: an iterator over all rows, chunk by chunk."""

    def scaled(self, factor: float) -> Source:
        """:return: the same rows, their weights times `factor`."""
        raise NotImplementedError

    def gather(self, index: AnyNDArray) -> tuple[Any, AnyNDArray]:
        """
        :param index: row numbers, of any shape.
        :return: rows that hold these, and where among them each stands (same shape as `index`).
        """
        raise NotImplementedError

    def stream(self, position: int) -> Iterator[Batch]:
        """:return: minibatches without end, from number `position` on."""
        raise NotImplementedError

    def see(self, batch: Batch) -> Any:
        """:return: rows as `chunks` has them."""
        return batch


class ArraySource(Source):
    """Rows in memory."""

    def __init__(self, X: Any, Y: AnyNDArray, weight: AnyNDArray, chunk_rows: int) -> None:
        """
        :param X: [N, D], an array or `SparseRows`; Y: [N, P]; weight: [N, 1].
        :param chunk_rows: rows of a chunk.
        """
        self._columns, self.chunk_rows = (X, Y, weight), chunk_rows
        self.num_rows = len(Y)

    def chunks(self) -> Iterator[Batch]:
        """See `Source`."""
        if self.num_rows <= self.chunk_rows:
            return iter([self._whole])
        starts = range(0, self.num_rows, self.chunk_rows)
        return (self.take(slice(start, start + self.chunk_rows)) for start in starts)

    def scaled(self, factor: float) -> ArraySource:
        """See `Source`."""
        X, Y, weight = self._columns
        return ArraySource(X, Y, weight * factor, self.chunk_rows)

    def take(self, index: Any) -> Batch:
        """:return: the rows of these numbers."""
        return Batch(*(tf.convert_to_tensor(column[index]) for column in self._columns))

    @functools.cached_property
    def _whole(self) -> Batch:
        return self.take(slice(None))

    def gather(self, index: AnyNDArray) -> tuple[Batch, AnyNDArray]:
        """See `Source`; all rows where they are dense."""
        if isinstance(self._columns[0], SparseRows):
            return self.take(index.reshape(-1)), np.arange(index.size).reshape(index.shape)
        return self._whole, index


class DatasetSource(Source):
    """
    Batches (X, Y) or (X, Y, sample_weight) of a `tf.data.Dataset`, checked as they come. It is read
    anew in each pass, and started again where minibatches go on.
    """

    indexed = False

    def __init__(
        self, dataset: tf.data.Dataset, check: Check, chunk_rows: int, factor: float = 1.0
    ) -> None:
        """
        :param check: of the rows of a batch.
        :param chunk_rows: batches are put together to chunks of so many rows, or a little more.
        :param factor: of the weights.
        """
        self._dataset, self._check = dataset, check
        self.chunk_rows, self._factor = chunk_rows, factor

    @functools.cached_property
    def num_rows(self) -> int:  # type: ignore[override]
        """:return: N, by a pass over the data."""
        return sum(len(batch.Y) for batch in self._one_pass())

    def chunks(self) -> Iterator[Batch]:
        """See `Source`."""
        group: list[Batch] = []
        for batch in self._one_pass():
            group.append(batch)
            if sum(len(one.Y) for one in group) >= self.chunk_rows:
                yield joined(group)
                group = []
        if group:
            yield joined(group)

    def scaled(self, factor: float) -> DatasetSource:
        """See `Source`."""
        return DatasetSource(self._dataset, self._check, self.chunk_rows, self._factor * factor)

    def stream(self, position: int) -> Iterator[Batch]:
        """:return: the batches, the dataset started again where it ends."""
        while True:
            for count, batch in enumerate(self._batches(), 1):
                if count > position:
                    yield batch
            position = max(0, position - count)

    def _one_pass(self) -> Iterator[Batch]:
        if self._dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise ValueError(
                "the dataset repeats without end, and all the data are needed: leave out "
                "repeat(), or use SVI or ML2"
            )
        return self._batches()

    def _batches(self) -> Iterator[Batch]:
        row = 0
        for element in self._dataset.as_numpy_iterator():
            if not isinstance(element, tuple) or len(element) not in (2, 3):
                raise ValueError("a dataset must yield (X, Y) or (X, Y, sample_weight), in batches")
            X, Y = self._check(element[0], element[1], row)
            given = element[2] if len(element) == 3 else None
            weight = check_weights(given, len(X), minibatch=True, first_row=row) * self._factor
            row += len(X)
            yield Batch(*map(tf.convert_to_tensor, (X, Y, weight)))
        if row == 0:
            raise ValueError("the dataset is empty: it must yield batches (X, Y)")


def joined(batches: list[Batch]) -> Batch:
    """:return: the rows of all, one after the other."""
    return batches[0] if len(batches) == 1 else Batch(*(tf.concat(c, 0) for c in zip(*batches)))
