"""Labels of any type as the numbers of classes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray

from ..data.pieces import Origin
from ..optional import require

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
    broken = [one for one in labels if isinstance(one, float) and one != np.floor(one)]
    if broken or len(labels) > max(2, num_rows / 2):
        such = f", such as {broken[0]:g}" if broken else ""
        raise ValueError(
            f"{what} holds {len(labels)} different labels in {num_rows} rows{such}, as numbers to "
            "be regressed have: classes are expected; is target the right column? (Numbers are for "
            "BSVMRegressor)"
        )


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

    @property
    def arrow_type(self) -> Any:
        """:return: pyarrow's type of the labels."""
        return self._values.type

    def __call__(self, column: Any, origin: Origin) -> AnyNDArray:
        """
        :return: numbers, one for each row of the column.
        :raise ValueError: for a label that is none of the classes, with its file and row.
        """
        arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
        if arrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        where = origin.place
        try:
            known = self._values.cast(column.type)
        except arrow.ArrowException as error:
            raise ValueError(
                f"{where}labels are of type {column.type}, and the classes {self.names[:8]!r} "
                "are not; give classes of that type"
            ) from error
        found = compute.index_in(column, value_set=known)
        if found.null_count:
            row = int(np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))[0])
            raise ValueError(
                f"{where}{origin.row(row)}: label {column[row].as_py()!r} is none of the classes "
                f'{self.names[:8]!r}; give all that there are, or classes="auto"'
            )
        return np.asarray(found.to_numpy(zero_copy_only=False), gpflow.default_float())
