"""Parts of the data, as read and as tensors, and their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.base import AnyNDArray

T = TypeVar("T")
#: Hexadecimal digits of a digest: two contents have equal digests with probability 4e-15.
_DIGITS = 12


class Batch(NamedTuple):
    """Rows of a source; in a prediction, Y has no columns."""

    X: tf.Tensor  #: [N, D]
    Y: tf.Tensor  #: [N, P]
    weight: tf.Tensor  #: [N, 1], powers of the likelihood

    def between(self, start: Any, stop: Any) -> Batch:
        """:return: the rows from `start` to before `stop`."""
        return Batch._make(column[start:stop] for column in self)


def take(columns: T, index: Any) -> T:
    """:return: the rows at these indices, in order, of tensors in any structure."""
    return cast(T, tf.nest.map_structure(partial(tf.gather, indices=index), columns))


def joined(parts: Sequence[T]) -> T:
    """:return: the rows of all parts, in order; parts are tensors in equal structures."""
    columns = zip(*map(tf.nest.flatten, parts))
    return cast(T, tf.nest.pack_sequence_as(parts[0], [tf.concat(c, 0) for c in columns]))


def regrouped(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """:return: the rows as NumPy arrays in batches of `size`; the last may be smaller."""
    group: list[Batch] = []
    for batch in batches:
        start = 0
        number = len(batch.X)
        while start < number:
            stop = start + size - sum(len(one.X) for one in group)
            group.append(batch.between(start, stop))
            start = stop
            if stop <= number:
                yield _together(group)
                group = []
    if group:
        yield _together(group)


def _together(group: list[Batch]) -> Batch:
    return group[0] if len(group) == 1 else Batch._make(map(np.concatenate, zip(*group)))


class Origin(NamedTuple):
    """The position of rows in their source, for errors."""

    first_row: int = 0  #: index of the first row
    file: str | None = None  #: file in which rows are counted
    columns: tuple[Any, ...] | None = None  #: names of the columns of X
    numbers: AnyNDArray | None = None  #: indices of all rows, if not consecutive
    kind: str = "file"  #: the kind of `file`

    @property
    def place(self) -> str:
        """:return: the beginning of a message."""
        return "" if self.file is None else f"{self.kind} {self.file}, "

    def row(self, index: int) -> str:
        """:return: the name of the row with this index."""
        number = self.first_row + index if self.numbers is None else self.numbers[index]
        return f"row {number}"

    def column(self, index: int) -> str:
        """:return: the name of the column with this index."""
        return f"column {index if self.columns is None else repr(self.columns[index])}"

    def rows(self, number: int) -> str:
        """:return: a name for `number` rows."""
        if self.numbers is not None:
            return f"{self.place}a minibatch of {number} rows"
        return f"{self.place}rows {self.first_row} to {self.first_row + max(number, 1) - 1}"


class Piece(NamedTuple):
    """Unchecked rows, and their position in the source."""

    X: Any  #: [n, D]
    Y: Any  #: [n, P]; None without labels
    weight: Any  #: [n, 1]; None for ones
    origin: Origin

    def check_lengths(self) -> None:
        """:raise ValueError: if X, Y and weight have different lengths; slicing would hide this."""
        number = np.shape(self.X)[0]
        for name, column in (("Y", self.Y), ("sample_weight", self.weight)):
            found = number if column is None else len(np.atleast_1d(column))
            if found != number:
                raise ValueError(
                    f"{self.origin.rows(number)}: X has {number} rows and {name} has {found}; they "
                    "must be equal"
                )

    def cut(self, size: int) -> Iterator[Piece]:
        """:return: the rows in consecutive pieces of at most `size`; raises as `check_lengths`."""
        self.check_lengths()
        for start in range(0, max(np.shape(self.X)[0], 1), size):
            yield self.between(start, start + size)

    def between(self, start: int, stop: int) -> Piece:
        """:return: the rows from `start` to before `stop`; rows must be consecutive."""
        origin = self.origin._replace(first_row=self.origin.first_row + start)
        return self.part(slice(start, stop), origin)

    def part(self, index: Any, origin: Origin) -> Piece:
        """:return: the rows at these indices."""
        X, Y, weight = (None if column is None else column[index] for column in self[:3])
        return Piece(X, Y, weight, origin)


class SparseRows:
    """A SciPy sparse matrix whose slices are dense: `rows[100:200]` is an ndarray."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = scipy.sparse.csr_matrix(matrix)
        self.shape: tuple[int, int] = self._matrix.shape
        self.dtype: np.dtype[Any] = self._matrix.dtype
        self.ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> AnyNDArray:
        return np.asarray(self._matrix[index].toarray())

    def part(self, index: AnyNDArray) -> SparseRows:
        """:return: the rows at these indices, still sparse."""
        return SparseRows(self._matrix[index])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyNDArray:
        return np.asarray(self._matrix.toarray(), dtype)

    @property
    def parts(self) -> tuple[AnyNDArray, ...]:
        """:return: the arrays that determine the matrix."""
        matrix = self._matrix
        return matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)

    @property
    def values(self) -> AnyNDArray:
        """:return: the stored entries."""
        return np.asarray(self._matrix.data)


def digest(content: str | AnyNDArray) -> str:
    """:return: a digest of a text or of the bytes of an array."""
    data = content.encode() if isinstance(content, str) else _bytes(content)
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _bytes(array: Any) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def digests(batches: Iterable[Any]) -> dict[str, str]:
    """:return: a digest of each column of all rows, however these are split into batches."""
    sums = [hashlib.sha256() for _ in Batch._fields]
    rows = 0
    kinds = [""] * len(Batch._fields)
    for batch in batches:
        rows += len(batch[0])
        for number, column in enumerate(batch):
            kinds[number] = f"{[rows, *column.shape[1:]]} {column.dtype.name}"
            for part in column.parts if isinstance(column, SparseRows) else [column]:
                sums[number].update(_bytes(part))
    told = zip(Batch._fields, kinds, sums)
    return {n: f"{k} ({one.hexdigest()[:_DIGITS]})" for n, k, one in told}
