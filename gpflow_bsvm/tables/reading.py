"""The user's description of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict


class Options(TypedDict, total=False):
    """The attributes of `Reading` except `target`, as keyword arguments of file readers."""

    weight: str | None
    features: Sequence[str] | None
    drop: Sequence[str]
    classes: Sequence[Any] | str | None
    words: bool | Sequence[str]
    dates: Sequence[str]
    marks: Mapping[str, str] | None
    na_values: Sequence[str] | None
    decimal: str | None
    thousands: str | None
    names: Sequence[str] | None
    separator: str | None
    encoding: str | None


@dataclass(frozen=True)
class Reading:
    """
    The columns to read from files, and the files' format; None: detect the format.

    :ivar target: name of the label column. Without `classes`, its numbers must be as the likelihood
        expects. None: without labels, as in predictions.
    :ivar weight: name of the weight column; None: all weights are 1.
    :ivar features: names of the columns of X, in this order; None: all columns except `drop` and
        unnamed columns, such as an index written by pandas.
    :ivar classes: labels of any type, converted to 0..C-1 in this order; "auto": a pass over the
        files finds them, and sorts them unless their type has an order. Labels are the strings in
        the file, but whole numbers in Python's format become numbers. "any": like "auto", but
        accepts labels that look like regression targets.
    :ivar words: whether text columns become categories; or names of columns that become categories
        even if they look like numbers. A pass over the files finds the values, at most 50 per
        column. Each becomes a 0/1 feature "column=word", which `features` may list.
    :ivar dates: names of columns with dates or times, which become days since 1970.
    :ivar marks: `Column.mark` of the columns in training, by name.
    :ivar na_values: strings that mean a missing value, besides the empty string; "-99" also matches
        -99.0 in columns of numbers. None: the usual strings among numbers, such as "NA", "?".
    :ivar decimal: the decimal sign.
    :ivar thousands: the sign between groups of three digits.
    :ivar names: all column names of a CSV file without a header.
    :ivar separator: field separator; None: one that gives the first lines equally many fields.
    :ivar encoding: text encoding; None: as a byte order mark indicates, else UTF-8.
    """

    target: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    classes: Sequence[Any] | str | None = None
    words: bool | Sequence[str] = False
    dates: Sequence[str] = ()
    marks: Mapping[str, str] | None = None
    na_values: Sequence[str] | None = None
    decimal: str | None = None
    thousands: str | None = None
    names: Sequence[str] | None = None
    separator: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        for name in ("features", "drop", "dates", "na_values", "names", "words"):
            value = getattr(self, name)
            unordered = isinstance(value, set | frozenset) and name in ("features", "names")
            if unordered or isinstance(value, str):
                raise ValueError(f"{name} must be a list of names, got {value!r}")
            if isinstance(value, Iterable):  # an array or an Index of pandas has no truth value
                object.__setattr__(self, name, tuple(map(str, value)))
        signs = [sign for sign in (self.decimal, self.thousands) if sign]
        odd = any(len(sign) > 1 or sign.isalnum() or sign in "+-" for sign in signs)
        if odd or len({*signs}) < len(signs):
            given = f"{self.decimal!r} and {self.thousands!r}"
            raise ValueError(f"decimal and thousands must be two different signs, got {given}")

    @property
    def told_words(self) -> Sequence[str]:
        """:return: names of columns declared as words."""
        return () if isinstance(self.words, bool) else self.words

    @property
    def empty(self) -> tuple[str, ...]:
        """:return: strings that always mean a missing value."""
        return ("", *(self.na_values or ()))

    @property
    def is_prediction(self) -> bool:
        """:return: True for predictions, which use a model's columns."""
        return self.features is not None and self.target is None

    @property
    def is_auto(self) -> bool:
        """:return: True if classes must be found."""
        return self.target is not None and str(self.classes) in ("auto", "any")
