"""Types, strings and numbers of pyarrow columns."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..optional import Later

arrow = Later("pyarrow", "files")
compute = Later("pyarrow.compute", "files")

#: Regular expressions for names of types.
TEXT = r"(large_)?string(_view)?"
NUMBERS = r"u?int\d+|halffloat|float|double|bool|null|decimal.*"
DATES = r"date.*|time.*"
_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
#: Number types that Python and a model file store unchanged.
_PLAIN = r"u?int(8|16|32)|int64|float|double|bool|null"


def is_a(kind: Any, pattern: str = TEXT) -> bool:
    """:return: True if the type, or the value type of a dictionary, matches."""
    kind = kind.value_type if arrow.types.is_dictionary(kind) else kind
    return re.fullmatch(pattern, str(kind)) is not None


def as_text(cells: Any) -> Any:
    """:return: a column as strings."""
    if arrow.types.is_dictionary(cells.type):
        cells = compute.cast(cells, cells.type.value_type)
    if not arrow.types.is_duration(cells.type):  # PyArrow would omit its unit
        with contextlib.suppress(arrow.ArrowNotImplementedError):  # lists, records
            return compute.cast(cells, arrow.string())
    return arrow.array([None if one is None else str(one) for one in cells.to_pylist()])


def as_labels(cells: Any) -> Any:
    """:return: the column if it holds numbers or (ordered) categories; else its strings."""
    category = is_a(cells.type) and arrow.types.is_dictionary(cells.type)
    return cells if category or is_a(cells.type, _PLAIN) else as_text(cells)


def cast(cells: Any, kind: Any) -> Any:
    """:return: the column as another type; None if a string does not fit."""
    try:
        return compute.cast(cells, kind, safe=False)
    except arrow.ArrowInvalid:
        return None


def as_truth(texts: Any) -> Any:
    """:return: booleans for true and false (in upper or lower case); None for other strings."""
    texts = compute.utf8_trim_whitespace(texts)
    fit = compute.match_substring_regex(texts, r"^(?i:true|false)$")
    return cast(texts, arrow.bool_()) if compute.all(fit).as_py() is not False else None


def in_ascii(texts: Any) -> Any:
    """:return: the strings, with typographic spaces and minus signs converted to ASCII."""
    replace = compute.replace_substring_regex
    return replace(replace(texts, "[\u00a0\u2009\u202f]", " "), "^\u2212", "-")


def without(cells: Any, missing: Sequence[str]) -> Any:
    """:return: the column, with null for these values; numbers match in every spelling."""
    texts = is_a(cells.type)
    codes = _as_numbers(arrow.array([*missing], "string")).drop_null()
    if not (texts or len(codes)):
        return cells
    if arrow.types.is_dictionary(cells.type):
        cells = compute.cast(cells, cells.type.value_type)
    if cells.offset:  # `if_else` of pyarrow 15 ignores the offset of a slice
        cells = cells.take(arrow.array(np.arange(len(cells))))
    none = False
    if texts:
        bare = compute.utf8_trim_whitespace(cells)
        none = compute.is_in(bare, value_set=arrow.array([*missing]))
    if len(codes):
        numbers = _as_numbers(cells) if texts else compute.cast(cells, arrow.float64(), safe=False)
        none = compute.or_(compute.is_in(numbers, value_set=codes), none)
    return compute.if_else(none, arrow.scalar(None, cells.type), cells)


def _as_numbers(texts: Any) -> Any:
    """:return: the column as numbers; null for any other string."""
    plain = compute.replace_substring(in_ascii(compute.utf8_trim_whitespace(texts)), ",", ".")
    fit = compute.match_substring_regex(plain, _NUMBER)
    return cast(compute.if_else(fit, plain, arrow.scalar(None, plain.type)), arrow.float64())


def as_float(cells: Any) -> Any:
    """:return: the values, [n]; NaN for null."""
    if cells.type != arrow.float16():  # pyarrow 15 cannot cast these
        cells = compute.cast(cells, arrow.float64(), safe=False)
    return np.asarray(cells.to_numpy(zero_copy_only=False), np.float64)
