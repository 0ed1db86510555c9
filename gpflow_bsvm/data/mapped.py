"""Arrays that are mapped from files, read piece by piece; the pages read are given back."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from .pieces import Origin, Piece
from .readers import Reader

#: Bytes. The system brings pages before the one that was asked for too, as many as a huge page.
_AROUND = 2**22


class MappedArrays(Reader):
    """Arrays of which at least one is mapped from a file (`np.memmap`), never read as a whole."""

    finite = True

    def __init__(self, X: Any, Y: Any = None, weight: Any = None) -> None:
        """
        :param X: [N, D]; Y: [N, P]; weight: [N].
        :raise ValueError: for arrays of different length.
        """
        self._columns = tuple(None if c is None else np.asanyarray(c) for c in (X, Y, weight))
        self._rows = Piece.of(self._columns, Origin())
        self._rows.check_lengths()
        self.num_rows = len(X)

    @property
    def labels(self) -> dict[str, AnyNDArray]:
        """:return: labels and weights of all rows by name."""
        columns = zip(("Y", "weight"), self._columns[1:])
        return {name: column for name, column in columns if column is not None}

    def pieces(self, size: int) -> Iterator[Piece]:
        """See `Reader`."""
        for *columns, origin in self._rows.cut(size):
            yield Piece.of([None if c is None else _taken(c) for c in columns], origin)

    def numbered(self, index: AnyNDArray) -> Piece:
        """:return: the rows of these numbers, [n]."""
        columns = [None if c is None else _numbered(c, index) for c in self._columns]
        return Piece.of(columns, Origin(numbers=index))


def is_mapped(array: Any) -> bool:
    """:return: whether an array's memory is that of a file."""
    return _mapping(array) is not None


def give_back(rows: Any) -> None:
    """
    Pages of a mapped file that were read count as memory of the process. Those of `rows` do no
    longer after this, and come again when they are looked at. Nothing is done for files that are
    not mapped for reading only, where a page may hold what the file does not, for arrays in memory,
    and on systems without such advice.
    """
    mapping, advice = _read_only(rows), getattr(mmap, "MADV_DONTNEED", None)
    if mapping is None or advice is None or rows.size == 0:
        return
    begin = np.frombuffer(mapping, np.uint8).ctypes.data
    by_column = rows.ndim == 2 and abs(rows.strides[0]) < abs(rows.strides[1])
    for part in rows.T if by_column else [rows]:
        low, high = getattr(np.lib, "array_utils", np).byte_bounds(part)  # NumPy from 2, and before
        start = max(low - begin - _AROUND, 0) // mmap.PAGESIZE * mmap.PAGESIZE
        with contextlib.suppress(OSError):  # of pages that are locked, say: it is advice only
            mapping.madvise(advice, start, high - begin - start)


def _taken(rows: AnyNDArray) -> AnyNDArray:
    """:return: rows that need no page of a file any more, where these can be given back."""
    if _read_only(rows) is None:
        return rows
    own = np.array(rows)
    give_back(rows)
    return own


def _numbered(column: AnyNDArray, index: AnyNDArray) -> AnyNDArray:
    """
    :return: `column[index]`. Pages are given back on the way if numbers rise, as those of a sample
        do. Minibatches are all over the file: to bring its pages anew for each of them would take
        longer than their steps.
    """
    if _read_only(column) is None or (np.diff(index) <= 0).any():
        return np.asarray(column[index])
    place = index // max(_AROUND // max(column[:1].nbytes, 1), 1)
    parts = []
    for some in np.split(index, np.flatnonzero(np.diff(place)) + 1):
        parts.append(np.asarray(column[some]))
        give_back(column[some[0] : some[-1] + 1] if len(some) else column[:0])
    return np.concatenate(parts)


def _read_only(array: Any) -> mmap.mmap | None:
    """:return: the mapping that an array is part of, if it is for reading only."""
    mapping = _mapping(array)
    if mapping is None:
        return None
    with memoryview(mapping) as view:
        return mapping if view.readonly else None


def _mapping(array: Any) -> mmap.mmap | None:
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None
