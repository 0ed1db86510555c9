"""Arrays that are mapped from files, read piece by piece."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from .pieces import Origin, Piece
from .readers import Reader


class MappedArrays(Reader):
    """Arrays of which at least one is mapped from a file (`np.memmap`), never read as a whole."""

    finite = True

    def __init__(self, X: Any, Y: Any = None, weight: Any = None) -> None:
        """
        :param X: [N, D]; Y: [N, P]; weight: [N].
        :raise ValueError: for arrays of different length.
        """
        self._rows = Piece(X, Y, weight, Origin()).each(np.asanyarray)
        self._rows.check_lengths()
        self.num_rows = len(X)

    @property
    def labels(self) -> dict[str, AnyNDArray]:
        """:return: labels and weights of all rows by name."""
        columns = zip(("Y", "weight"), self._rows[1:3])
        return {name: column for name, column in columns if column is not None}

    def pieces(self, size: int) -> Iterator[Piece]:
        """See `Reader`."""
        yield from self._rows.cut(size)

    def numbered(self, index: AnyNDArray) -> Piece:
        """:return: the rows of these numbers, [n]."""
        rows = self._rows.each(lambda column: np.asarray(column[index]))
        return rows._replace(origin=Origin(numbers=index))


def is_mapped(array: Any) -> bool:
    """:return: True if an array's memory is that of a file."""
    return _mapping(array) is not None


def _mapping(array: Any) -> mmap.mmap | None:
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None
