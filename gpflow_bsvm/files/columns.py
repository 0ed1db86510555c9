"""The columns of a table that are X, labels and weights, and their values as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray

from ..data.pieces import Origin, Piece
from ..optional import require
from ..tables import own_columns, quoted, word_of
from .labels import ClassNumbers


class Columns:
    """
    Columns by name, of files and of data frames alike.

    :ivar features: names of the columns of X; "column=word" is 1 where the column has this word.
    :ivar numbers: of the classes; None where labels are numbers.
    """

    def __init__(
        self,
        names: Sequence[str],
        target: str | None,
        weight: str | None,
        features: Sequence[str] | None,
        classes: Any,
    ) -> None:
        """
        :param names: of all columns that there are.
        :param features: None: all others, except the index that pandas writes beside them.
        :param classes: as of `ClassNumbers`, or None.
        """
        if isinstance(features, str):
            raise ValueError(f"features must be a list of names, got the string {features!r}")
        if classes is not None and target is None:
            raise ValueError("classes are of the labels: give target=..., the name of their column")
        self.target, self.weight = target, weight
        self.numbers = None if classes is None else ClassNumbers(classes)
        others = [name for name in own_columns(names) if name not in (target, weight)]
        self.features = tuple(others if features is None else features)
        found = {name: word_of(str(name), names) for name in self.features}
        self._words = {name: word for name, word in found.items() if word is not None}

    @property
    def classes(self) -> list[Any] | None:
        """:return: the label of each class 0..C-1, if labels become numbers."""
        return None if self.numbers is None else self.numbers.names

    @property
    def texts(self) -> set[str]:
        """:return: names of columns of words."""
        return {column for column, _ in self._words.values()}

    @property
    def read(self) -> list[str]:
        """:return: names of all columns that are read."""
        own = dict.fromkeys(self._words.get(name, (name,))[0] for name in self.features)
        return [*own, *(name for name in (self.target, self.weight) if name is not None)]

    def check_names(self, names: Sequence[str], where: str, exactly: bool = False) -> None:
        """
        :param where: the table, for errors.
        :param exactly: whether unused columns are an error.
        :raise ValueError: if the table lacks a column, or has one twice.
        """
        missing = [name for name in self.read if name not in names]
        more = [name for name in own_columns(names) if exactly and name not in self.read]
        lower = {name.lower() for name in names}
        has = f"it has {quoted(names)}, and {quoted(self.read)} are read"
        if missing and all(name.lower() in lower for name in missing):
            has = "these names differ only in case"
        for what, wrong in (("lacks", missing), ("has, beside the others,", more)):
            if wrong:
                raise ValueError(
                    f"{where} {what} {quoted(wrong)}; {has}: choose them by features, target and "
                    "weight"
                )
        named = [n for n in (*self.features, self.target, self.weight) if n is not None]
        if not self.features:
            raise ValueError(f"{where} has no columns for X beside target and weight")
        if len({*named}) != len(named) or self.texts & {self.target, self.weight}:
            raise ValueError(
                f"features {quoted(self.features)}, target {self.target!r} and weight "
                f"{self.weight!r} must be different columns"
            )
        doubled = sorted({name for name in names if [*names].count(name) > 1})
        if doubled:
            raise ValueError(f"{where} has several columns of the name {quoted(doubled)}")

    def check_types(self, no_numbers: dict[str, Any], where: str) -> None:
        """
        :param no_numbers: types of the columns that are not numeric.
        :raise ValueError: if one of them must be numeric.
        """
        encoded = self.texts | ({self.target} if self.numbers is not None else set())
        for name in self.read:
            if name in no_numbers and name not in encoded:
                advice = (
                    'give classes="auto", or classes=[...], the labels in the order of 0..C-1'
                    if name == self.target
                    else "leave it out by features=[...], or encode it as numbers"
                )
                raise ValueError(
                    f"column {name!r} of {where} holds {no_numbers[name]}, and numbers are needed: "
                    f"{advice}"
                )

    def piece(self, table: Any, origin: Origin) -> Piece:
        """
        :param table: of pyarrow, with at least the columns that are read.
        :raise ValueError: for a word without a feature, or a label that is none of the classes.
        """
        origin = origin._replace(columns=self.features)
        X: AnyNDArray = np.empty((table.num_rows, len(self.features)), gpflow.default_float())
        for index, name in enumerate(self.features):
            X[:, index] = self._feature(table, name)
        for column in self.texts:
            self._check_words(table, column, origin)
        Y = None if self.target is None else self._labels(table.column(self.target), origin)
        weight = None if self.weight is None else _as_float(table.column(self.weight))[:, None]
        return Piece(X, Y, weight, origin)

    def _feature(self, table: Any, name: str) -> AnyNDArray:
        if name not in self._words:
            return _as_float(table.column(name))
        column, word = self._words[name]
        return _as_float(require("pyarrow.compute").equal(as_text(table.column(column)), word))

    def _check_words(self, table: Any, column: str, origin: Origin) -> None:
        arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
        texts = as_text(table.column(column))
        words = [word for own, word in self._words.values() if own == column]
        known = compute.is_in(texts, value_set=arrow.array([*words, None]))
        if not compute.all(known).as_py():
            row = compute.index(known, False).as_py()
            raise ValueError(
                f"{origin.place}{origin.row(row)}: {texts[row].as_py()!r} in column {column!r} is "
                f"none of the words {quoted(words)}"
            )

    def _labels(self, column: Any, origin: Origin) -> AnyNDArray:
        numbers = _as_float(column) if self.numbers is None else self.numbers(column, origin)
        return numbers[:, None]


def as_text(column: Any) -> Any:
    """:return: a column of pyarrow as strings."""
    arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
    return compute.cast(column, arrow.string())


def _as_float(column: Any) -> AnyNDArray:
    """:return: a column of numbers; what is missing is NaN."""
    arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
    numbers = compute.cast(column, arrow.float64(), safe=False)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), gpflow.default_float())
