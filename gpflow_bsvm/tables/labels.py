"""Labels as written, and their class numbers."""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from .paths import short

#: Largest number of classes.
MOST_CLASSES = 1000


def check_are_classes(
    labels: Collection[Any], num_rows: int, what: str, numbers: Collection[Any] | None = None
) -> None:
    """
    :param labels: the distinct labels of `num_rows` rows.
    :param what: where the labels come from, for the error message.
    :param numbers: labels that may be regression targets; None: all except strings.
    :raise ValueError: for fewer than two labels, or for labels that look like regression targets:
        fractions, or more different labels than half the number of rows.
    """
    if len(labels) == 0:
        raise ValueError(f"{what} has no rows")
    if len(labels) == 1:
        raise ValueError(f"{what} holds one class only ({short(next(iter(labels)))})")
    if numbers is None:
        numbers = [label for label in labels if not isinstance(label, str)]
    broken = [one for one, number in zip(numbers, _numbers(numbers)) if number != np.floor(number)]
    if broken or len(labels) > max(2, num_rows / 2):
        why = ", too many for classes"
        how = ""
        if broken:
            why = f", such as {broken[0]}: they look like numbers to be regressed"
            how = '; for classes, give strings, or classes="any" with files'
        raise ValueError(
            f"{what} holds {len(labels)} different labels in {num_rows} rows{why}; is target the "
            f"right column? Use BSVMRegressor for numbers{how}"
        )


def look_like_numbers(labels: Collection[Any], num_rows: int) -> bool:
    """:return: True if there are too many different numbers for classes."""
    return bool(_numbers(labels)) and len(labels) > 20 and num_rows < 50 * len(labels)


def _numbers(labels: Collection[Any]) -> list[float]:
    """:return: the labels as numbers; empty if any is not a number."""
    try:
        return [float(str(label).replace(",", ".")) for label in labels]
    except ValueError:
        return []


def spelled_alike(labels: Iterable[Any]) -> list[str]:
    """:return: the strings that differ only in case, outer spaces, encoding, zeros or a plus."""
    groups = dict[str, list[str]]()
    for label in labels:
        if isinstance(label, str):
            alike = unicodedata.normalize("NFC", label.strip().casefold())  # an accent is one sign
            alike = re.sub(r"^[+0]+(?=\d)|\.0+$", "", alike)  # 1, 01, +1 and 1.0 are one number
            groups.setdefault(alike, []).append(label)
    return [label for group in groups.values() if len(group) > 1 for label in group]


def as_written(labels: Iterable[Any]) -> list[Any]:
    """
    :return: the sorted labels: strings as integers, or else as floats, if Python would write all
        of them like this; or else as strings (such as 007, 1e3, +1 and true).
    """
    labels = list(labels)
    for kind in (int, float):
        with contextlib.suppress(ValueError, OverflowError):
            numbers = [kind(label) for label in labels]
            if [str(one) for one in numbers if abs(one) < 2**63] == labels:
                return sorted(numbers)
    return sorted(labels, key=lambda one: (isinstance(one, str), one))


def class_list(classes: Any, distinct: bool = True) -> list[Any]:
    """
    :param distinct: whether duplicates are an error; if not, they are left out.
    :return: the labels, in class order.
    :raise ValueError: for fewer than two labels, duplicates, or several types.
    """
    others = (str, Mapping, set, frozenset) if distinct else (str, Mapping)  # sets have no order
    is_list = isinstance(classes, Iterable) and not isinstance(classes, others)
    if not is_list or np.ndim(classes) > 1:
        kind = type(classes).__name__
        raise ValueError(f"classes must be a list of labels, got the {kind} {classes!r}")
    names = list(classes if distinct else dict.fromkeys(classes))
    if len(set(names)) != max(2, len(names)):
        raise ValueError(
            f"classes must be two or more different labels, in the order 0..C-1, got {classes!r}"
        )
    if len({str if isinstance(name, str) else isinstance(name, bool) for name in names}) > 1:
        raise ValueError(f"classes must be labels of one type, got {classes!r}")
    return names
