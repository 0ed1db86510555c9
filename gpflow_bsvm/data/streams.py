"""Data outside memory: blocks, parts of other readers, `tf.data`, memory-mapped files."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.base import AnyNDArray

from .batch import Batch
from .checks import check_dtype
from .pieces import Origin, Piece
from .prefetch import closed_at_end
from .readers import Reader, checked


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
        :param num_rows: N, if known, to save counting.
        :raise TypeError: for iterators such as generators, which can be read only once.
        """
        if isinstance(blocks, Iterator):
            raise TypeError(
                f"a {type(blocks).__name__} can be read only once, and a fit takes several passes: "
                "give a list of blocks, an object whose iter() starts anew, or the function that "
                "makes the generator, as gpflow_bsvm.data.Blocks(function)"
            )
        self._blocks = blocks
        self.known_rows = num_rows
        self.ordered = self.told_by_rows = isinstance(blocks, list)
        self.maker = None if self.ordered else blocks

    def pieces(self, size: int) -> Iterator[Piece]:
        """See `Reader`."""
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
        :param start: index of the first row, from 0.
        :param stop: index after the last row; None: up to the end.
        :raise ValueError: unless 0 <= start < stop.
        """
        if not 0 <= start < (start + 1 if stop is None else stop):
            raise ValueError(f"rows {start} to {stop} are empty: 0 <= start < stop is needed")
        self._reader = reader
        self._start = start
        self._stop = stop
        last = reader.known_rows if stop is None else stop
        self.known_rows = None if last is None else last - start
        self.finite = reader.finite if stop is None else True
        self.told_by_rows = reader.told_by_rows
        self.maker = reader.maker
        for name in {"features", "classes"} & {*dir(reader)}:
            setattr(self, name, getattr(reader, name))

    @property
    def marks(self) -> Mapping[str, str]:
        """See `Reader`."""
        part = {"part of the rows": f"{self._start} to {self._stop}"}
        return {**super().marks, **self._reader.marks, **part}

    def pieces(self, size: int) -> Iterator[Piece]:
        """See `Reader`."""
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

    own_batches = True

    def __init__(self, dataset: tf.data.Dataset) -> None:
        super().__init__(dataset.as_numpy_iterator)
        self._dataset = dataset
        self._number = int(dataset.cardinality())
        if self._number == tf.data.INFINITE_CARDINALITY:
            self.finite = False

    @property
    def marks(self) -> Mapping[str, str]:
        """See `Source`."""
        return {**super().marks, "batches": str(self._number)}

    def _without_end(self) -> Iterator[Batch]:
        """By TensorFlow, because to begin a dataset anew takes some 20 ms."""
        endless = copy.copy(self)
        endless._blocks = self._dataset.repeat().as_numpy_iterator
        endless.known_rows = None
        return endless._checked()

    def pieces(self, size: int) -> Iterator[Piece]:
        """See `Reader`."""
        for piece in super().pieces(sys.maxsize):
            check_dtype(piece.X)  # avoids conversion in every pass
            yield piece


def _of_block(block: Any, origin: Origin) -> Piece:
    """:raise ValueError: unless it is X, (X, Y) or (X, Y, weight)."""
    if isinstance(block, (tuple, list)) and len(block) in (2, 3):
        return Piece(block[0], block[1], block[2] if len(block) == 3 else None, origin)
    if getattr(block, "ndim", None) == 2:
        return Piece(block, None, None, origin)
    raise ValueError(
        "a block, or a batch of a dataset, must be (X, Y) or (X, Y, sample_weight), got "
        f"{type(block).__name__}"
    )


class MappedArrays(Reader):
    """Arrays, at least one of them memory-mapped (`np.memmap`), never read as a whole."""

    indexed = True
    told_by_rows = True

    def __init__(self, X: Any, Y: Any = None, weight: Any = None) -> None:
        """
        :param X: [N, D]; Y: [N, P]; weight: [N].
        :raise ValueError: for arrays of different lengths.
        """
        X, Y, weight = (None if one is None else np.asanyarray(one) for one in (X, Y, weight))
        self._rows = Piece(X, Y, weight, Origin())
        self._rows.check_lengths()
        self.known_rows = len(X)

    def pieces(self, size: int) -> Iterator[Piece]:
        """See `Reader`."""
        yield from self._rows.cut(size)

    def gather(self, index: AnyNDArray) -> tuple[Batch, AnyNDArray]:
        """See `Source`; reads exactly these rows."""
        numbers = index.reshape(-1)
        rows = checked(self._rows.part(numbers, Origin(numbers=numbers)), self._asked)
        return self._tensors(rows), np.arange(index.size).reshape(index.shape)
