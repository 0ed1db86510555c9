"""Numbers that may be something else: codes, dates, marks for missing values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .cells import NUMBERS, arrow, as_text, compute, is_a

#: The share of the values that dates and months must exceed.
_MOST = 0.8
#: Whole numbers that may stand for categories: the key, how many different numbers may occur, and
#: the fewest rows for each.
FEW = "take few whole values"
_FEW = range(3, 9)
_FEWEST_ROWS = 10
#: Other meanings of numbers: a pattern, its smallest share of the values, and advice.
ODDITIES = {
    "begin with 0": (r"0\d+", 0, "if they are codes, give words={}"),
    "are written as 45E3": (r"\d+[eE]\d+", 0.5, "if they are codes, give words={}"),
    "begin with +": (r"\+\d{6,}", 0.5, "if they are telephone numbers, give drop={}"),
    "may be dates": (
        r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])",
        *(_MOST, "if they are, give dates={}"),
    ),
    "may be months": (r"(19|20)\d\d(0[1-9]|1[0-2])", _MOST, "if they are, write them as 2020-01"),
    "may mark missing values, such as -99 or -999": (
        r"-9{2,}(\.0+)?",
        *(0, "if they do, give them as na_values=[...]"),
    ),
    FEW: (r"-?\d+", 0.99, "if they stand for categories, give words={}"),
    "have too many digits for float64": (
        r"[+-]?0*(9\d{15}|[1-9]\d{16,})",  # beyond 2^53
        *(0, "if they are keys, give drop={}, because close values become equal"),
    ),
}
#: Oddities that one value shows (share 0): patterns, and numbers for columns of numbers.
_RARE_TEXTS = [rf"^\s*({one})\s*$" for one, share, _ in ODDITIES.values() if not share]
_RARE_NUMBERS = [1 - 10.0**digits for digits in range(2, 16)]


def rare_rows(cells: Any) -> Iterator[int]:
    """:return: the first row with each oddity that a single value shows (share 0)."""
    rare = []
    if is_a(cells.type):
        texts = as_text(cells)
        rare = [compute.match_substring_regex(texts, pattern) for pattern in _RARE_TEXTS]
    elif is_a(cells.type, NUMBERS):
        numbers = compute.cast(cells, arrow.float64(), safe=False)
        rare = [compute.is_in(numbers, value_set=arrow.array(_RARE_NUMBERS))]
    rows = (compute.index(flags, True).as_py() for flags in rare)
    return (row for row in rows if row >= 0)


def found(texts: Sequence[str], num_rows: int) -> list[str]:
    """:return: the keys of `ODDITIES` that apply to the distinct values of `num_rows` rows."""
    some = [text for text in texts if "." not in text or text[:2] == "-9"]  # not fractions
    shares = {
        key: sum(bool(re.fullmatch(pattern, text)) for text in some) / max(len(texts), 1)
        for key, (pattern, _, _) in ODDITIES.items()
    }
    fitting = [key for key, share in shares.items() if share > ODDITIES[key][1]]
    are_few = len(texts) in _FEW and num_rows >= _FEWEST_ROWS * len(texts)
    return [key for key in fitting if key != FEW or are_few]
