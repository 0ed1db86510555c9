"""Rows as NumPy arrays, as they are read, and their position in the source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray


class Origin(NamedTuple):
    """The position of rows in their source, for errors."""

    first_row: int = 0  #: index of the first row
    file: str | None = None  #: file in which rows are counted
    columns: tuple[str, ...] | None = None  #: names of the columns of X
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
    """Some rows."""

    X: Any  #: [n, D]
    Y: Any  #: [n, P]; None without labels
    weight: Any  #: [n, 1]; None for ones
    origin: Origin

    def check_lengths(self) -> None:
        """:raise ValueError: for columns of different lengths; slicing would hide these."""
        number = np.shape(self.X)[0]
        for name, column in (("Y", self.Y), ("sample_weight", self.weight)):
            found = number if column is None else len(np.atleast_1d(column))
            if found != number:
                raise ValueError(
                    f"{self.origin.rows(number)}: X has {number} rows and {name} has {found}; they "
                    "must be equal"
                )

    def cut(self, size: int) -> Iterator[Piece]:
        """
        :return: the rows in consecutive pieces of at most `size` rows.
        :raise ValueError: see `check_lengths`.
        """
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
