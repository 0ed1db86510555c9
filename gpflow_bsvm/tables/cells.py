"""Columns of pyarrow: their types, their texts and their numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..optional import Later

arrow, compute = Later("pyarrow", "files"), Later("pyarrow.compute", "files")

#: Names of types, as regular expressions.
TEXT = r"(large_)?string(_view)?"
NUMBERS = r"u?int\d+|halffloat|float|double|bool|null|decimal.*"
DATES = r"date.*|time.*"
#: Numbers that Python and a model file hold as they are.
_PLAIN = r"u?int(8|16|32)|int64|float|double|bool|null"


def is_a(kind: Any, pattern: str = TEXT) -> bool:
    """:return: True for a type of such a name, or a dictionary of that type."""
    kind = kind.value_type if arrow.types.is_dictionary(kind) else kind
    return re.fullmatch(pattern, str(kind)) is not None


def as_text(cells: Any) -> Any:
    """:return: a column as strings."""
    if arrow.types.is_dictionary(cells.type):
        cells = compute.cast(cells, cells.type.value_type)
    try:
        return compute.cast(cells, arrow.string())
    except arrow.ArrowNotImplementedError:  # lists, records
        return arrow.array([None if one is None else str(one) for one in cells.to_pylist()])


def as_labels(cells: Any) -> Any:
    """:return: a column of numbers, or of categories, which may have an order; else of strings."""
    category = is_a(cells.type) and arrow.types.is_dictionary(cells.type)
    return cells if category or is_a(cells.type, _PLAIN) else as_text(cells)


def cast(cells: Any, kind: Any) -> Any:
    """:return: a column of another type; None if some texts are no such values."""
    try:
        return compute.cast(cells, kind, safe=False)
    except arrow.ArrowInvalid:
        return None


def as_truth(texts: Any) -> Any:
    """:return: a column of texts such as "True" as zeros and ones; None if some are no such."""
    fit = compute.match_substring_regex(texts, r"^(?i:true|false)$")
    return cast(texts, arrow.bool_()) if compute.all(fit).as_py() is not False else None


def without(texts: Any, missing: Sequence[str]) -> Any:
    """:return: a column of texts, null where they mean that a value is missing."""
    if texts.offset:  # `if_else` of pyarrow 15 forgets where a part of an array begins
        texts = texts.take(arrow.array(np.arange(len(texts))))
    none = compute.is_in(texts, value_set=arrow.array([*missing]))
    return compute.if_else(none, arrow.scalar(None, arrow.string()), texts)


def as_float(cells: Any) -> Any:
    """:return: [n], what is missing is NaN."""
    numbers = compute.cast(cells, arrow.float64(), safe=False)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
