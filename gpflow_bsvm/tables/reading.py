"""What is said of a table by those who read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict


class Options(TypedDict, total=False):
    """Attributes of `Reading` besides `target`, as readers of files take them by keyword."""

    weight: str | None
    features: Sequence[str] | None
    drop: Sequence[str]
    classes: Sequence[Any] | str | None
    words: bool | Sequence[str]
    dates: Sequence[str]
    zoned: Sequence[str] | None
    na_values: Sequence[str] | None
    decimal: str | None
    thousands: str | None
    names: Sequence[str] | None
    separator: str | None
    encoding: str | None


@dataclass(frozen=True)
class Reading:
    """
    What is read of files, and how they are written; None: as the files show.

    :ivar target: name of the column of labels, numbers as the likelihood wants them; None: for
        predictions.
    :ivar weight: name of the column of weights; None: ones.
    :ivar features: names of the columns of X, in this order; None: all others except those
        without a name (the index, as pandas writes it) and those of `drop`.
    :ivar classes: labels of any type, in the order of 0..C-1, which become numbers; "auto": a
        pass finds them, and sorts them unless their type has an order. A label is its text as
        the file has it; whole numbers written as Python does become numbers. "any": as "auto",
        also where labels look like numbers to be regressed.
    :ivar words: whether a pass finds the words of columns of text: of at most 50 each becomes
        a feature "column=word" of zeros and ones, as which `features` may name it; or names of
        columns that are words even if they look like numbers.
    :ivar dates: names of columns of dates or times, which become days since 1970; zoned: of those
        among them whose times have a time zone; None: as the file shows.
    :ivar na_values: texts that mean that a value is missing, besides the empty one; None:
        those that are usual among numbers, such as "NA" and "?".
    :ivar decimal: the decimal sign of numbers; thousands: the one between groups of three digits.
    :ivar names: of all columns of a CSV file, if its first line is already a row.
    :ivar separator: None: that which cuts the first lines into equally many fields.
    :ivar encoding: None: that of a byte order mark, else UTF-8.
    """

    target: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    classes: Sequence[Any] | str | None = None
    words: bool | Sequence[str] = False
    dates: Sequence[str] = ()
    zoned: Sequence[str] | None = None
    na_values: Sequence[str] | None = None
    decimal: str | None = None
    thousands: str | None = None
    names: Sequence[str] | None = None
    separator: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        for name in ("features", "drop", "dates", "na_values", "names"):
            if isinstance(value := getattr(self, name), str):
                raise ValueError(f"{name} must be a list of names, got the string {value!r}")

    @property
    def told_words(self) -> Sequence[str]:
        """:return: names of columns that are said to be words."""
        return () if isinstance(self.words, bool) else self.words

    @property
    def empty(self) -> tuple[str, ...]:
        """:return: texts that stand for nothing wherever they are."""
        return ("", *(self.na_values or ()))

    @property
    def is_prediction(self) -> bool:
        """:return: True if nothing is to be learned from the rows: the columns are a model's."""
        return self.features is not None and self.target is None

    @property
    def is_auto(self) -> bool:
        """:return: True if classes are to be found."""
        found = isinstance(self.classes, str) and self.classes in ("auto", "any")
        return found and self.target is not None
