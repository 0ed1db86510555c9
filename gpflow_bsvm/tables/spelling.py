"""Spellings of numbers in strings. All numbers of a column use the same spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from .cells import arrow, cast, compute, in_ascii

#: Default strings for a missing number.
MISSING = (
    *("", "?", ".", "-", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "-NaN"),
    *("NULL", "null", "None", "#NA", "#N/A N/A", r"\N"),
)


class Spelling(NamedTuple):
    """A number format, with or without a thousands separator."""

    decimal: str = "."
    thousands: str = ""

    @property
    def about(self) -> str:
        """:return: a description for users."""
        groups = f", thousands {self.thousands!r}" if self.thousands else ""
        return f"numbers, decimal {self.decimal!r}{groups}" if self != PLAIN else "numbers"

    def read(self, texts: Any) -> Any:
        """:return: a column of numbers; None if a string does not fit, see `odd`."""
        texts = compute.utf8_trim_whitespace(texts)
        if self == PLAIN:
            numbers = cast(texts, arrow.float64())
            return cast(in_ascii(texts), arrow.float64()) if numbers is None else numbers
        if self.odd(texts):
            return None
        texts = compute.replace_substring(in_ascii(texts), self.thousands or " ", "")
        return cast(compute.replace_substring(texts, self.decimal, "."), arrow.float64())

    def odd(self, texts: Any) -> list[str]:
        """:return: the distinct strings that do not fit."""
        decimal = re.escape(self.decimal)
        groups = re.escape(self.thousands)
        whole = rf"(\d+|[1-9]\d{{0,2}}({groups}\d{{3}})+)" if groups else r"\d+"
        number = rf"({whole}({decimal}\d*)?|{decimal}\d+)(e[+-]?\d+)?"
        pattern = rf"^(?i:[+-]?({number}|inf|infinity))$"
        fit = compute.match_substring_regex(in_ascii(compute.utf8_trim_whitespace(texts)), pattern)
        return [str(one) for one in compute.unique(texts.filter(compute.invert(fit))).to_pylist()]


PLAIN = Spelling()


def possible(decimal: str | None = None, thousands: str | None = None) -> list[Spelling]:
    """:return: the spellings that the user's signs allow."""
    if decimal is None and thousands is None:
        return [PLAIN, Spelling(","), Spelling(".", ","), Spelling(",", ".")]
    decimal = decimal or ("," if thousands == "." else ".")
    return [Spelling(decimal), Spelling(decimal, thousands or ("," if decimal == "." else "."))]


def chosen(fitting: Sequence[Spelling], comma: bool = False) -> Spelling | None:
    """
    :param fitting: at least one spelling that fits a column, in the order of `possible`.
    :param comma: whether another column has decimal commas, so that points are ambiguous.
    :return: the column's spelling; None if it is ambiguous.
    """
    return None if in_doubt(fitting) and (comma or PLAIN not in fitting) else fitting[0]


def in_doubt(fitting: Sequence[Spelling]) -> bool:
    """:return: True if 1,234 or 1.234 may be a fraction or a whole number."""
    return len({one.decimal for one in fitting}) == 2 and len(fitting) < 4
