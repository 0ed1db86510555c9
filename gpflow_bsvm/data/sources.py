"""Sources of rows: arrays and SciPy's sparse matrices here, other data in a `Reader`.

Passes and algorithms treat all sources alike (`Source`).
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from .batch import Batch, SparseRows, digests, joined

T = TypeVar("T")
#: A function that converts rows one by one.
View = Callable[[Batch], Batch]
_END: Any = object()


class Source(ABC):
    """
    Rows, or results computed from rows, always in the same order.

    :ivar indexed: whether `gather` gives rows by index, in a fixed order; else the source forms
        minibatches itself (`stream`).
    :ivar finite: whether passes end, so that rows can be counted; None if unknown.
    :ivar ordered: whether all passes are certain to have the same order.
    :ivar known_rows: N if known without a pass, else None.
    :ivar chunk_rows: rows per chunk; 0 if it varies.
    :ivar maker: the user's function or object that supplies the rows, or None.
    """

    indexed = True
    finite: bool | None = True
    ordered = True
    maker: Any = None
    known_rows: int | None = None
    chunk_rows = 0

    @property
    def counted(self) -> bool:
        """:return: True if the number of rows is known, or a finite pass finds it."""
        return bool(self.finite) or self.known_rows is not None

    @property
    def num_rows(self) -> int:
        """:return: N, the rows of one pass."""
        raise NotImplementedError

    @property
    def least_rows(self) -> int:
        """:return: a lower limit of N, known without a pass."""
        return self.num_rows

    @property
    def row_bytes(self) -> int:
        """:return: bytes per row, without its features; 0 if rows are in memory anyway."""
        return 0

    @property
    def remote(self) -> Remote | None:
        """:return: the rows if other processes hold them and run the passes, else None."""
        return None

    @abstractmethod
    def chunks(self) -> Iterator[Any]:
        """:return: an iterator over all rows, chunk by chunk."""

    def in_blocks(self, num_bytes: int) -> Iterator[Any]:
        """:return: an iterator over blocks with `num_bytes` of X each; the last may be smaller."""
        waiting: list[Batch] = []
        with closed_at_end(self.chunks()) as batches:
            for batch in batches:
                waiting.append(batch)
                if sum(part.X.numpy().nbytes for part in waiting) >= num_bytes:
                    yield joined(waiting)
                    waiting = []
            if waiting:
                yield joined(waiting)

    @property
    def one_chunk(self) -> bool:
        """:return: True if all rows are in this process in one chunk: a pass is one call."""
        return bool(self.chunk_rows) and self.remote is None and self.num_rows <= self.chunk_rows

    @property
    def marks(self) -> Mapping[str, str]:
        """:return: facts that identify data without reading the rows."""
        return {}

    def digests(self) -> Mapping[str, str]:
        """:return: digests of all rows, by column; empty if reading them is expensive."""
        return {}

    def scaled(self, factor: float) -> Source:
        """:return: the same rows, with weights times `factor`."""
        return self.viewed(functools.partial(_scaled, factor))

    def viewed(self, view: View) -> Source:
        """:return: the rows as `view` converts them, in each pass."""
        raise NotImplementedError

    def gather(self, index: AnyNDArray) -> tuple[Any, AnyNDArray]:
        """
        :return: some rows, and the positions among them of the rows at `index`, shaped as `index`.
        :raise ValueError: if rows cannot be read by index.
        """
        raise ValueError(
            "these data can only be read in order, but rows are needed by index: give arrays (X, "
            "Y), in memory or np.memmap"
        )

    def stream(self, position: int, batch_size: int) -> Iterator[Batch]:
        """:return: endless minibatches of `batch_size` rows, from minibatch `position` on."""
        raise NotImplementedError

    def project(self, batch: Batch) -> Any:
        """:return: the batch in the form that `chunks` yields."""
        return batch


def _scaled(factor: float, batch: Batch) -> Batch:
    return batch._replace(weight=batch.weight * factor)


class ArraySource(Source):
    """Rows in memory."""

    def __init__(self, X: Any, Y: AnyNDArray, weight: AnyNDArray, chunk_rows: int) -> None:
        """:param X: [N, D], an array or `SparseRows`; Y: [N, P]; weight: [N, 1]."""
        self._columns = (X, Y, weight)
        self.chunk_rows = chunk_rows

    @property
    def num_rows(self) -> int:
        return len(self._columns[1])

    def digests(self) -> Mapping[str, str]:
        return digests([self._columns])

    def chunks(self) -> Iterator[Batch]:
        if self.one_chunk:
            return iter([self._whole])
        starts = range(0, self.num_rows, self.chunk_rows)
        return (self.take(slice(start, start + self.chunk_rows)) for start in starts)

    def scaled(self, factor: float) -> ArraySource:
        X, Y, weight = self._columns
        return ArraySource(X, Y, weight * factor, self.chunk_rows)

    def viewed(self, view: View) -> ArraySource:
        """See `Source`; converts all rows now."""
        X, Y, weight = map(np.asarray, view(self._whole))
        return ArraySource(X, Y, weight, self.chunk_rows)

    def part(self, index: AnyNDArray) -> ArraySource:
        """:return: a source of the rows at these indices."""
        X, Y, weight = self._columns
        some = X.part(index) if isinstance(X, SparseRows) else X[index]
        return ArraySource(some, Y[index], weight[index], self.chunk_rows)

    def take(self, index: Any) -> Batch:
        """:return: the rows at these indices."""
        return Batch._make(tf.convert_to_tensor(column[index]) for column in self._columns)

    @functools.cached_property
    def _whole(self) -> Batch:
        return self.take(slice(None))

    def gather(self, index: AnyNDArray) -> tuple[Batch, AnyNDArray]:
        """See `Source`; all rows if they are dense."""
        if isinstance(self._columns[0], SparseRows):
            return self.take(index.reshape(-1)), np.arange(index.size).reshape(index.shape)
        return self._whole, index


class Remote(Protocol):
    """Rows in other processes, to which functions are sent. Arguments are as in `passes`."""

    def sum(self, function: Callable[..., Any], along: Any, add: Callable[[Any, Any], Any]) -> Any:
        """See `passes.sum_over`."""

    def map(self, function: Callable[..., Any], along: Any) -> Any:
        """See `passes.map_over`."""

    def projected(self, project: Callable[[Any], Any], keep: bool = False) -> Remote:
        """
        :param keep: whether the other processes keep the results; if not, each pass computes them.
        :return: the rows, in chunks that `project` has converted.
        """

    def digests(self) -> Mapping[str, str]:
        """See `Source`."""

    def has_room(self, num_bytes: float) -> bool:
        """:return: True if the other processes have room for `num_bytes`."""


def prefetched(items: Iterator[T], ahead: int = 2) -> Iterator[T]:
    """
    Yield the items, reading `ahead` items in advance in a thread; `ahead` + 1 items are in memory.
    An error of `items` is raised after the items before it. When this iterator ends, is closed, or
    raises an error, the thread has finished its current item and ended.

    :param items: closed at the end.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="gpflow_bsvm-reader")
    coming: deque[Future[T]] = deque()
    with closed_at_end(items):
        try:
            for _ in range(ahead):
                coming.append(pool.submit(next, items, _END))
            while (item := coming.popleft().result()) is not _END:
                coming.append(pool.submit(next, items, _END))
                yield item
                del item  # do not hold it while waiting
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            coming.clear()


@contextmanager
def closed_at_end(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """Close `items` at the end; otherwise an error's traceback would keep their reader alive."""
    try:
        yield items
    finally:
        if hasattr(items, "close"):  # a generator, which closes all generators that it reads
            items.close()
