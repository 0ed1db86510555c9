"""
Rows read and checked piece by piece, with a few chunks in memory at a time: blocks, parts of other
readers, `tf.data`, memory-mapped files.

To add a kind of data (another file format or library), write a `Reader` with `pieces` and every
property that is known in advance.
"""

from __future__ import annotations

import copy
import functools
import itertools
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.base import AnyNDArray

from .batch import Batch, Origin, Piece, digests, regrouped
from .checks import check_dtype, check_weights, refuse_masked, warn_of_digits
from .sources import Source, View, closed_at_end, prefetched

#: With more distinct labels than this, labels are not classes, and are not checked together.
MOST_LABELS = 1000


class Check(Protocol):
    """A model's check of rows."""

    def rows(self, X: Any, Y: Any, origin: Origin | None, /) -> tuple[Any, AnyNDArray]:
        """:return: checked X and Y of a part of the data; of all data if `origin` is None."""

    def labels(self, Y: AnyNDArray) -> None:
        """:raise ValueError: if `Y` cannot be the distinct labels of all the data."""


class Reader(Source):
    """
    Rows that are read again in each pass. A fit by minibatches that resumes reads them from the
    start. A thread reads ahead. All passes must have the same number of rows.

    Numbers become GPflow's default float.

    :ivar told_by_rows: whether a checkpoint reads all rows to identify the data.
    :ivar names: the names of the columns of X, after a pass; None without names.
    :ivar own_batches: number of pieces if all but the last have the size of minibatches (at most 0
        if it is unknown), else None.
    """

    indexed = False
    finite: bool | None = None
    told_by_rows = False
    names: tuple[str, ...] | None = None
    own_batches: int | None = None
    _batch_rows = 0
    _asked: Check
    _said: int | None = None
    _passed = False
    _views: tuple[View, ...] = ()

    @abstractmethod
    def pieces(self, size: int) -> Iterator[Piece]:
        """:return: an iterator over all unchecked rows, about `size` at a time if possible."""

    def opened(self, check: Check, chunk_rows: int) -> Source:
        """:return: the rows in chunks of `chunk_rows`; `check` checks them while they are read."""
        source = copy.copy(self)
        source._asked = check
        source.chunk_rows = chunk_rows
        source._said = self.known_rows
        return source

    @property
    def marks(self) -> Mapping[str, str]:
        return {} if self._said is None else {"rows": str(self._said)}

    def digests(self) -> Mapping[str, str]:
        """See `Source`; reads through a copy, to keep this reader's state."""
        return digests(copy.copy(self).chunks()) if self.told_by_rows else {}

    @property
    def num_rows(self) -> int:
        """:return: N, computed by a pass over the data if necessary."""
        if self.known_rows is None and not self.chunk_rows:  # no model has opened the rows
            return sum(np.shape(piece.X)[0] for piece in self.pieces(2**14))
        if self.known_rows is None:
            self.known_rows = sum(len(batch.X) for batch in self._one_pass())
        return self.known_rows

    @functools.cached_property
    def row_bytes(self) -> int:
        """:return: the size in bytes of a row's X, first label and weight, see `Source`."""
        with closed_at_end(self._checked()) as batches:
            num_columns = next(batches).X.shape[1]
        return int((num_columns + 2) * tf.as_dtype(gpflow.default_float()).size)

    @property
    def least_rows(self) -> int:
        """See `Source`; a dataset with batches of its own gives 0 before its first minibatch."""
        return self.known_rows or max(0, (self.own_batches or 0) - 1) * self._batch_rows

    def viewed(self, view: View) -> Reader:
        other = copy.copy(self)
        other._views = (*self._views, view)
        return other

    def chunks(self) -> Iterator[Batch]:
        with closed_at_end(prefetched(regrouped(self._one_pass(), self.chunk_rows))) as batches:
            for batch in batches:
                yield self._tensors(batch)

    def stream(self, position: int, batch_size: int) -> Iterator[Batch]:
        """
        See `Source`. Minibatches of a dataset are as large as the larger of its first two batches,
        because rows of a smaller last batch would count more than other rows.
        """
        size = min(batch_size, self.known_rows or batch_size)
        with closed_at_end(prefetched(self._without_end())) as rows:
            first = [next(rows), next(rows)]
            if self.own_batches is not None:
                sizes = [len(batch.Y) for batch in first]
                size, self._batch_rows = max(sizes), min(sizes)
            batches = regrouped(itertools.chain(first, rows), size)
            for batch in itertools.islice(batches, position, None):
                yield self._tensors(batch)

    def _tensors(self, batch: Batch) -> Batch:
        seen = Batch._make(map(tf.convert_to_tensor, batch))
        for view in self._views:
            seen = view(seen)
        return seen

    def _without_end(self) -> Iterator[Batch]:
        while True:
            yield from self._checked()

    def _one_pass(self) -> Iterator[Batch]:
        """Read all rows; the first pass checks all labels and weights together."""
        if self.finite is False:
            raise ValueError(
                "the dataset repeats endlessly, but a pass must end: leave out repeat(), "
                "or use SVI or ML2"
            )
        return self._checked() if self._passed else self._first_pass()

    def _first_pass(self) -> Iterator[Batch]:
        labels: AnyNDArray = np.zeros(0)
        weighs = False
        for batch in self._checked():
            weighs = weighs or bool(batch.weight.any())
            if len(labels) <= MOST_LABELS:
                labels = np.union1d(labels, batch.Y)
            one_column = batch.Y.shape[1] == 1
            yield batch
        if not weighs:
            raise ValueError("sample_weight must not be all zero: no row would count")
        if one_column and len(labels) <= MOST_LABELS:
            self._asked.labels(labels[:, None])

    def _checked(self) -> Iterator[Batch]:
        """Make one pass; check that it has as many rows as the first pass."""
        row = 0
        first: Any = None
        for piece in self.pieces(self.chunk_rows):
            batch = checked(piece, self._asked)
            number, width = batch.X.shape
            names = names_of(piece.origin.columns)
            columns: Any = names or f"{width} columns"
            first = columns if first is None else first
            if columns != first:
                where = piece.origin.rows(number)
                raise ValueError(
                    f"{where}: X has {columns}, but earlier rows had {first}: make them equal"
                )
            row += number
            self.names = names
            yield batch
        self._check_end(row)
        self.known_rows = row
        self._passed = True

    def _check_end(self, row: int) -> None:
        expected = self.known_rows
        if row == 0 and not expected:
            raise ValueError("the dataset is empty: it must yield batches (X, Y)")
        if expected is not None and row != expected:
            whose = "but should have" if expected == self._said else "but an earlier pass had"
            raise ValueError(
                f"the data ended after {row} rows, {whose} {expected}: every pass must give all "
                "rows again (an iterator or a generator is exhausted after the first pass; use an "
                "object whose iter() starts anew)"
            )


def checked(piece: Piece, check: Check) -> Batch:
    """
    :return: the rows as arrays of GPflow's default float.
    :raise ValueError: for bad rows; the message begins with their position.
    """
    X, Y, weight, origin = piece
    try:
        X = _as_numbers(X, "X")
        Y = None if Y is None else _as_numbers(Y, "Y")
        X, Y = check.rows(X, Y, origin)
        return Batch(X, Y, check_weights(weight, len(X), minibatch=True, origin=origin))
    except ValueError as error:
        number = np.shape(piece.X)[0] if np.ndim(piece.X) else 0
        raise ValueError(f"{origin.rows(number)}: {error}") from error


def _as_numbers(values: Any, name: str) -> AnyNDArray:
    """:return: an array of GPflow's default float; sparse matrices become dense."""
    refuse_masked(values, name)
    array = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold numbers, got dtype {array.dtype}: encode or convert it")
    warn_of_digits(array, gpflow.default_float(), name)
    return np.asarray(array, gpflow.default_float())


class Blocks(Reader):
    """
    Blocks (X, Y) or (X, Y, sample_weight) from an object that can be iterated over repeatedly, such
    as a list or an object with `__iter__`, or a function that returns a new iterator::

        gpflow_bsvm.fit(model, gpflow_bsvm.data.Blocks(my_generator_function, num_rows=10**8))

    Blocks may have any number of rows; about three must fit into memory. X may be a SciPy sparse
    matrix. For predictions, X alone is enough.
    """

    def __init__(
        self, blocks: Iterable[Any] | Callable[[], Iterable[Any]], num_rows: int | None = None
    ) -> None:
        """
        :param num_rows: N if known, so that rows need not be counted.
        :raise TypeError: for iterators such as generators, which can be read only once.
        """
        if isinstance(blocks, Iterator):
            raise TypeError(
                f"this {type(blocks).__name__} can be read only once, and a fit takes several "
                "passes: give a list of blocks, a tf.data.Dataset without iter(), or the function "
                "that makes the generator, as gpflow_bsvm.data.Blocks(function)"
            )
        self._blocks = blocks
        self.known_rows = num_rows
        self.ordered = self.told_by_rows = isinstance(blocks, list)
        self.finite = self.ordered or None
        self.maker = None if self.ordered else blocks

    def pieces(self, size: int) -> Iterator[Piece]:
        row = 0
        for block in self._blocks() if callable(self._blocks) else self._blocks:
            piece = _of_block(block, Origin(row))
            if scipy.sparse.issparse(piece.X):
                piece = piece._replace(X=piece.X.tocsr())
            row += np.shape(piece.X)[0] if np.ndim(piece.X) else 0
            yield from piece.cut(size) if np.ndim(piece.X) == 2 else [piece]


class Part(Reader):
    """Consecutive rows of another reader, for example without held-out rows."""

    def __init__(self, reader: Reader, start: int = 0, stop: int | None = None) -> None:
        """
        :param start: index of the first row, from 0; stop: index after the last row, or None.
        :raise ValueError: unless 0 <= start < stop.
        """
        last = reader.known_rows if stop is None else stop
        if not 0 <= start < (start + 1 if last is None else last):
            raise ValueError(f"rows {start} to {last} are empty: 0 <= start < stop is needed")
        self._reader = reader
        self._start = start
        self._stop = stop
        self.known_rows = None if last is None else last - start
        self.finite = reader.finite if stop is None else True
        of_all = {"ordered", "told_by_rows", "maker", "features", "classes", "classes_in_order"}
        for name in of_all & {*dir(reader)}:
            setattr(self, name, getattr(reader, name))

    @property
    def marks(self) -> Mapping[str, str]:
        part = {"part of the rows": f"{self._start} to {self._stop}"}
        return {**super().marks, **self._reader.marks, **part}

    def pieces(self, size: int) -> Iterator[Piece]:
        row = 0
        with closed_at_end(self._reader.pieces(size)) as pieces:
            for piece in pieces:
                number = len(piece.X)
                stop = number if self._stop is None else min(self._stop - row, number)
                start = max(self._start - row, 0)
                if start < stop:
                    yield piece.between(start, stop)
                row += number
                if self._stop is not None and row >= self._stop:
                    return


class DatasetBatches(Blocks):
    """The batches (X, Y) or (X, Y, sample_weight) of a `tf.data.Dataset`."""

    def __init__(self, dataset: tf.data.Dataset) -> None:
        super().__init__(dataset.as_numpy_iterator)
        self._dataset = dataset
        self.own_batches = int(dataset.cardinality())
        if self.own_batches == tf.data.INFINITE_CARDINALITY:
            self.finite = False

    @property
    def marks(self) -> Mapping[str, str]:
        return {**super().marks, "batches": str(self.own_batches)}

    def _without_end(self) -> Iterator[Batch]:
        """Let TensorFlow repeat the dataset, because starting it again takes about 20 ms."""
        endless = copy.copy(self)
        endless._blocks = self._dataset.repeat().as_numpy_iterator
        endless.known_rows = None
        return endless._checked()

    def pieces(self, size: int) -> Iterator[Piece]:
        for piece in super().pieces(sys.maxsize):
            if getattr(piece.X, "ndim", 0) < 2 and np.size(piece.Y) != np.size(piece.X):
                raise ValueError(
                    "a dataset must give batches (X [N, D], Y [N, P]): use dataset.batch(1000); for"
                    " X by columns, dataset.map(lambda X, Y: (tf.stack([*X.values()], -1), Y))"
                )
            check_dtype(piece.X)  # a conversion would repeat in every pass
            yield piece


def names_of(columns: Any, fitted: Iterable[Any] | None = ()) -> tuple[str, ...] | None:
    """
    :param columns: names of any type, or None.
    :param fitted: the names in an earlier fit; None if it had none; empty if there was no fit.
    :return: the names as strings. The numbers 0 to D - 1 in order are not names, unless the fit had
        them in another order.
    :raise ValueError: for these numbers in another order, after a fit without names.
    """
    names = tuple(map(str, columns or ()))
    numbers = tuple(map(str, range(len(names))))
    if fitted is None and names != numbers and {*names} == {*numbers}:
        raise ValueError(
            f"the columns of X are {[*names]}, but in training they were in the order of their "
            "numbers: give them in this order"
        )
    places = [*(columns or ())] == [*range(len(names))]
    return None if places and (fitted is None or {*names} != {*fitted}) else names or None


def _of_block(block: Any, origin: Origin) -> Piece:
    """:raise ValueError: unless it is X, (X, Y) or (X, Y, weight)."""
    several = isinstance(block, (tuple, list)) and len(block) in (2, 3)
    X, Y, weight = (*block, None, None)[:3] if several else (block, None, None)
    if several or len(getattr(X, "shape", ())) == 2:
        # X may be a PyArrow table or a data frame.
        names = X.column_names if hasattr(type(X), "column_names") else getattr(X, "columns", ())
        return Piece(X, Y, weight, origin._replace(columns=tuple(names) or None))
    raise ValueError(
        "a block, or a batch of a dataset, must be (X, Y) or (X, Y, sample_weight), got "
        f"{type(block).__name__}"
    )


class MappedArrays(Reader):
    """Arrays, at least one of them memory-mapped (`np.memmap`), never read as a whole."""

    indexed = True
    told_by_rows = True

    def __init__(self, X: Any, Y: Any = None, weight: Any = None) -> None:
        """:param X: [N, D]; Y: [N, P]; weight: [N]; lengths must be equal."""
        X, Y, weight = (None if one is None else np.asanyarray(one) for one in (X, Y, weight))
        self._rows = Piece(X, Y, weight, Origin())
        self._rows.check_lengths()
        self.known_rows = len(X)

    def pieces(self, size: int) -> Iterator[Piece]:
        yield from self._rows.cut(size)

    def gather(self, index: AnyNDArray) -> tuple[Batch, AnyNDArray]:
        """See `Source`; reads exactly these rows."""
        numbers = index.reshape(-1)
        rows = checked(self._rows.part(numbers, Origin(numbers=numbers)), self._asked)
        return self._tensors(rows), np.arange(index.size).reshape(index.shape)
