"""Arrays that are mapped from files, read piece by piece."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from .batch import Batch
from .pieces import Origin, Piece
from .readers import Reader, checked


class MappedArrays(Reader):
    """Arrays of which at least one is mapped from a file (`np.memmap`), never read as a whole."""

    indexed = True

    def __init__(self, X: Any, Y: Any = None, weight: Any = None) -> None:
        """
        :param X: [N, D]; Y: [N, P]; weight: [N].
        :raise ValueError: for arrays of different length.
        """
        X, Y, weight = (None if one is None else np.asanyarray(one) for one in (X, Y, weight))
        self._rows = Piece(X, Y, weight, Origin())
        self._rows.check_lengths()
        self.known_rows = len(X)

    @property
    def labels(self) -> dict[str, AnyNDArray]:
        """See `Source`."""
        columns = zip(("Y", "weight"), self._rows[1:3])
        return {name: column for name, column in columns if column is not None}

    def pieces(self, size: int) -> Iterator[Piece]:
        """See `Reader`."""
        yield from self._rows.cut(size)

    def gather(self, index: AnyNDArray) -> tuple[Batch, AnyNDArray]:
        """See `Source`: these rows and no others."""
        numbers = index.reshape(-1)
        rows = checked(self._rows.part(numbers, Origin(numbers=numbers)), self._asked)
        return self._tensors(rows), np.arange(index.size).reshape(index.shape)


def is_mapped(array: Any) -> bool:
    """:return: True if an array's memory is that of a file."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)
