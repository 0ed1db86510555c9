"""Labels as they are written, and the numbers of their classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..optional import require

if TYPE_CHECKING:
    from ..data.pieces import Origin

#: More distinct labels than this are not classes.
MOST_CLASSES = 1000


def check_are_classes(labels: Collection[Any], num_rows: int, what: str) -> None:
    """
    :param labels: the distinct labels of so many rows.
    :param what: their source, for the error.
    :raise ValueError: for fewer than two labels, and for labels that look like numbers to be
        regressed: fractions, or a new one in every other row.
    """
    if len(labels) == 0:
        raise ValueError(f"{what} has no rows")
    if len(labels) == 1:
        raise ValueError(f"{what} holds one class only ({next(iter(labels))})")
    broken = [one for one in _numbers(labels) if one != np.floor(one)]
    if broken or len(labels) > max(2, num_rows / 2):
        such = f", such as {broken[0]:g}" if broken else ""
        raise ValueError(
            f"{what} holds {len(labels)} different labels in {num_rows} rows{such}, as numbers to "
            "be regressed have: classes are expected; is target the right column? (Numbers are for "
            "BSVMRegressor)"
        )


def look_like_numbers(labels: Collection[Any], num_rows: int) -> bool:
    """:return: True for so many different numbers that they may be meant to be regressed."""
    return bool(_numbers(labels)) and len(labels) > 20 and num_rows < 50 * len(labels)


def _numbers(labels: Collection[Any]) -> list[float]:
    """:return: the labels, if all are numbers, however they are written; else none."""
    try:
        return [float(str(label).replace(",", ".")) for label in labels]
    except ValueError:
        return []


def as_written(texts: Iterable[str]) -> list[Any]:
    """
    :return: labels, sorted: whole numbers, or numbers with a point, where each text is what Python
        writes for its number; else the texts, so that 007, 1e3, +1 and true stay what they are.
    """
    texts = list(texts)
    for kind in (int, float):
        try:
            numbers = [kind(text) for text in texts]
        except ValueError:
            continue
        small = all(abs(number) < (2**63 if kind is int else np.inf) for number in numbers)
        if small and list(map(str, numbers)) == texts:
            return sorted(numbers)
    return sorted(texts)


def as_text(column: Any) -> Any:
    """:return: a column of pyarrow as strings."""
    arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
    if arrow.types.is_dictionary(column.type):
        column = compute.cast(column, column.type.value_type)
    try:
        return compute.cast(column, arrow.string())
    except arrow.ArrowNotImplementedError:  # lists, records: there is no text of them
        return compute.cast(arrow.nulls(len(column)), arrow.string())


def is_text(kind: Any) -> bool:
    """:return: True for the types of pyarrow that hold words."""
    types = require("pyarrow", extra="files").types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    is_view = getattr(types, "is_string_view", types.is_string)  # new in pyarrow 16
    return any((types.is_string(kind), types.is_large_string(kind), is_view(kind)))


def is_plain(kind: Any) -> bool:
    """:return: True for words, and for numbers that Python and a model file hold as they are."""
    types = require("pyarrow", extra="files").types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    of = types.is_floating(kind), types.is_boolean(kind), types.is_null(kind), is_text(kind)
    return any(of) or (types.is_integer(kind) and not types.is_uint64(kind))


class ClassNumbers:
    """
    Labels -> 0..C-1, for columns of pyarrow.

    :ivar names: the labels, in the order of the classes.
    """

    def __init__(self, classes: Any) -> None:
        """
        :param classes: labels in the order of 0..C-1.
        :raise ValueError: for fewer than two, a label twice, or labels of several types.
        """
        if isinstance(classes, str | Mapping):
            what = "string" if isinstance(classes, str) else "mapping"
            raise ValueError(f"classes must be a list of labels, got the {what} {classes!r}")
        self.names = list(classes)
        if len(set(self.names)) != max(2, len(self.names)):
            raise ValueError(
                "classes must be two or more different labels in the order of 0..C-1, got "
                f"{classes!r}"
            )
        arrow = require("pyarrow", extra="files")
        try:
            self._values = arrow.array(self.names)
        except arrow.ArrowException as error:
            raise ValueError(f"classes must be labels of one type, got {classes!r}") from error

    def __call__(self, column: Any, origin: Origin) -> Any:
        """
        :return: numbers, one for each row of the column.
        :raise ValueError: for a label that is none of the classes, with its file and row.
        """
        compute, values = require("pyarrow.compute", extra="files"), self._values
        written = is_text(column.type) or is_text(values.type) or not is_plain(column.type)
        if written:
            column, values = as_text(column), require("pyarrow").array([*map(str, self.names)])
        found = compute.index_in(column, value_set=self._of_type(values, column.type, origin))
        if found.null_count:
            row = compute.index(compute.is_null(found), True).as_py()
            raise ValueError(
                f"{origin.place}{origin.row(row)}: label {column[row].as_py()!r} is none of the "
                f'classes {self.names[:8]!r}; give all that there are, or classes="auto"'
            )
        return np.asarray(found.to_numpy(zero_copy_only=False), np.float64)

    def _of_type(self, values: Any, kind: Any, origin: Origin) -> Any:
        try:
            return values.cast(kind)
        except require("pyarrow").ArrowException as error:
            raise ValueError(
                f"{origin.place}labels are of type {kind}, and the classes {self.names[:8]!r} "
                "are not; give classes of that type"
            ) from error
