"""Sources that are read piece by piece: checked as rows come, a few chunks alive at a time."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from .batch import Batch
from .checks import check_weights
from .mapped import MappedArrays
from .pieces import Origin, Piece, regrouped
from .prefetch import closed_at_end, prefetched
from .readers import Reader
from .sources import Source

#: Labels of more kinds than this are no classes, and are not looked at together.
MOST_LABELS = 1000


class Check(Protocol):
    """What a model has to say of rows."""

    def rows(self, X: Any, Y: Any, origin: Origin | None, /) -> tuple[Any, AnyNDArray]:
        """:return: X and Y of a part of the data, or with None of all of them, checked."""

    def labels(self, Y: AnyNDArray) -> None:
        """:raise ValueError: if these are not the distinct labels of all the data."""


class StreamSource(Source):
    """
    The rows of a `Reader`, read anew in each pass and started again where minibatches go on; a
    thread reads ahead. Every pass must have as many rows as the first.

    Numbers of any type come out in GPflow's default float.
    """

    indexed = False

    def __init__(self, reader: Reader, check: Check, chunk_rows: int) -> None:
        """
        :param check: of the rows of a piece.
        :param chunk_rows: rows of a chunk.
        """
        self._reader, self._check = reader, check
        self.chunk_rows, self.ordered, self._factor = chunk_rows, reader.ordered, 1.0
        self._found: int | None = None

    @property
    def counted(self) -> bool:  # type: ignore[override]
        """:return: see `Source`."""
        return bool(self._reader.finite) or self._found is not None

    @property
    def one_chunk(self) -> bool:
        """See `Source`."""
        return self.num_rows <= self.chunk_rows

    @property
    def known_rows(self) -> int | None:
        """See `Source`."""
        return self._reader.num_rows if self._found is None else self._found

    @property
    def marks(self) -> Mapping[str, str]:
        """See `Source`."""
        return self._reader.marks

    def expect(self, num_rows: int) -> None:
        """See `Source`."""
        self._found = num_rows

    @functools.cached_property
    def num_rows(self) -> int:  # type: ignore[override]
        """:return: N, if need be by a pass over the data."""
        known = self.known_rows
        return known if known is not None else sum(len(piece.X) for piece in self._one_pass())

    @functools.cached_property
    def row_bytes(self) -> int:  # type: ignore[override]
        """:return: see `Source`; of X, of the first label and of the weight."""
        with closed_at_end(self.checked_pieces()) as pieces:
            num_columns = next(pieces).X.shape[1]
        return int((num_columns + 2) * tf.as_dtype(gpflow.default_float()).size)

    def scaled(self, factor: float) -> StreamSource:
        """See `Source`."""
        other = copy.copy(self)
        other._factor = self._factor * factor
        return other

    def chunks(self) -> Iterator[Batch]:
        """See `Source`."""
        with closed_at_end(prefetched(regrouped(self._one_pass(), self.chunk_rows))) as pieces:
            for piece in pieces:
                yield self._batch(piece)

    def stream(self, position: int, batch_size: int) -> Iterator[Batch]:
        """See `Source`; the reader's own batches where they are meant to be minibatches."""
        with closed_at_end(prefetched(self._without_end())) as pieces:
            known = self.known_rows
            size = batch_size if known is None else min(batch_size, known)
            batches = pieces if self._reader.own_batches else regrouped(pieces, size)
            for piece in itertools.islice(batches, position, None):
                yield self._batch(piece)

    def _batch(self, piece: Piece) -> Batch:
        if self._factor != 1:
            piece = piece._replace(weight=piece.weight * self._factor)
        return batch_of(piece)

    def _without_end(self) -> Iterator[Piece]:
        while True:
            yield from self.checked_pieces()

    def _one_pass(self) -> Iterator[Piece]:
        """All rows; the first such pass looks at labels and weights of all of them together."""
        if self._reader.finite is False:
            raise ValueError(
                "the dataset repeats without end, and all the data are needed: leave out "
                "repeat(), or use SVI or ML2"
            )
        return self.checked_pieces() if self._found else self._first_pass()

    def _first_pass(self) -> Iterator[Piece]:
        labels: AnyNDArray | None = None
        weighs = False
        for piece in self.checked_pieces():
            weighs = weighs or bool(piece.weight.any())
            if labels is None or len(labels) <= MOST_LABELS:
                found = np.unique(piece.Y)
                labels = found if labels is None else np.union1d(labels, found)
            one_column = piece.Y.shape[1] == 1
            yield piece
        if not weighs:
            raise ValueError("sample_weight must not be all zero")
        if labels is not None and len(labels) <= MOST_LABELS and one_column:
            self._check.labels(labels[:, None])

    def checked_pieces(self) -> Iterator[Piece]:
        """One pass, whose number of rows must be that of the first."""
        row, width = 0, None
        for piece in self._reader.pieces(self.chunk_rows):
            piece = checked(piece, self._check)
            width = piece.X.shape[1] if width is None else width
            if piece.X.shape[1] != width:
                where = piece.origin.rows(len(piece.X))
                raise ValueError(
                    f"{where}: X has {piece.X.shape[1]} columns, and {width} in the rows before"
                )
            row += len(piece.X)
            yield piece
        self._check_end(row)
        self._found = row

    def _check_end(self, row: int) -> None:
        expected = self.known_rows
        if row == 0 and not expected:
            raise ValueError("the dataset is empty: it must yield batches (X, Y)")
        if expected is not None and row != expected:
            whose = "it was said to have" if self._found is None else "an earlier pass had"
            raise ValueError(
                f"the data ended after {row} rows, {whose} {expected}: every pass must give all "
                "rows again (an iterator or a generator is exhausted after the first; use an "
                "object whose iter() starts anew)"
            )


class MappedSource(StreamSource):
    """Rows of arrays on disk: chunk by chunk, and those of a minibatch by number."""

    indexed = True
    _reader: MappedArrays

    @property
    def labels(self) -> Mapping[str, AnyNDArray]:
        """See `Source`."""
        return self._reader.labels

    def gather(self, index: AnyNDArray) -> tuple[Batch, AnyNDArray]:
        """See `Source`: these rows and no others."""
        rows = self._batch(checked(self._reader.numbered(index.reshape(-1)), self._check))
        return rows, np.arange(index.size).reshape(index.shape)


def checked(piece: Piece, check: Check) -> Piece:
    """
    :return: the piece as arrays of GPflow's default float, with weights as a column.
    :raise ValueError: which begins with where the rows stand.
    """
    X, Y, weight, origin = piece
    try:
        X, Y = as_numbers(X, "X"), None if Y is None else as_numbers(Y, "Y")
        X, Y = check.rows(X, Y, origin)
        weight = check_weights(weight, len(X), minibatch=True, origin=origin)
    except ValueError as error:
        number = np.shape(piece.X)[0] if np.ndim(piece.X) else 0
        raise ValueError(f"{origin.rows(number)}: {error}") from error
    return Piece(X, Y, weight, origin)


def batch_of(piece: Piece) -> Batch:
    """:return: the rows of a checked piece."""
    return Batch(*map(tf.convert_to_tensor, piece[:3]))


def as_numbers(values: Any, name: str) -> AnyNDArray:
    """
    :return: an array of GPflow's default float; sparse matrices come out dense.
    :raise ValueError: for anything but numbers.
    """
    array = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold numbers, got dtype {array.dtype}")
    return np.asarray(array, gpflow.default_float())
