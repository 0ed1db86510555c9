"""What becomes of the columns of a table: numbers, words, dates, or a reason why not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..optional import require
from .labels import ClassNumbers, as_text, is_text
from .paths import own_columns, quoted, word_of
from .spelling import MISSING, PLAIN, Spelling

if TYPE_CHECKING:
    from ..data.pieces import Origin

_DAY = 86_400e6  # microseconds


class Column(NamedTuple):
    """
    A column of a table that becomes one or more of X.

    :ivar words: each of which is a feature "name=word" of zeros and ones; None: the column is one.
    :ivar spelling: of its numbers, where they are texts.
    :ivar date: whether they are days since 1970.
    :ivar missing: texts that stand for nothing.
    """

    name: str
    words: tuple[str, ...] | None = None
    spelling: Spelling = PLAIN
    date: bool = False
    missing: tuple[str, ...] = ("",)

    @property
    def features(self) -> list[str]:
        """:return: names of columns of X."""
        return [self.name] if self.words is None else [f"{self.name}={word}" for word in self.words]

    @property
    def about(self) -> str:
        """:return: a description for users."""
        if self.words is not None:
            return f"words ({', '.join(map(repr, self.words))})"
        return "dates, as days since 1970" if self.date else self.spelling.about

    def values(self, column: Any, origin: Origin) -> Any:
        """
        :param column: an array of pyarrow.
        :return: [n, K], NaN where a value is missing.
        :raise ValueError: for a value that is none of this kind, with its place.
        """
        if self.words is None and not self.date:
            return as_float(self._numbers(column, origin))[:, None]
        column = without(column, self.missing)
        if self.words is not None:
            return self._found(as_text(column), origin)
        return as_float(self._days(column, origin))[:, None]

    def _numbers(self, column: Any, origin: Origin) -> Any:
        if not is_text(column.type):
            return column
        if self.missing == MISSING:  # of these none is a number, and in most columns none is there
            with contextlib.suppress(ValueError):
                return self.spelling.read(as_text(column))
        texts = without(column, self.missing)
        with contextlib.suppress(ValueError):
            return self.spelling.read(texts)
        compute, arrow = require("pyarrow.compute"), require("pyarrow")
        truth = compute.utf8_lower(texts)
        if compute.all(
            compute.is_in(truth, value_set=arrow.array(["true", "false", None]))
        ).as_py():
            return truth.cast("bool")
        return self._refuse(texts, self.spelling.odd(texts)[0], self.spelling.about, origin)

    def _days(self, column: Any, origin: Origin) -> Any:
        arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
        if arrow.types.is_time(column.type):
            ticks = column.cast(arrow.time64("us")).cast(arrow.int64())
            return compute.divide(ticks.cast(arrow.float64()), _DAY)
        try:
            stamps = compute.cast(_with_day(column), arrow.timestamp("us"), safe=False)
        except arrow.ArrowInvalid as error:
            texts = as_text(column)
            odd = next((one for one in texts.to_pylist() if one and one in str(error)), "")
            self._refuse(texts, odd, "dates as 2020-01-31 12:30 or times as 15:30", origin)
        return compute.divide(stamps.cast(arrow.int64()).cast(arrow.float64()), _DAY)

    def _found(self, texts: Any, origin: Origin) -> Any:
        arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
        number = compute.index_in(texts, value_set=arrow.array(self.words))
        lost = compute.and_(compute.is_null(number), compute.is_valid(texts))
        if (row := compute.index(lost, True).as_py()) >= 0:
            raise ValueError(
                f"{origin.place}{origin.row(row)}: {texts[row].as_py()!r} in column {self.name!r} "
                f"is none of the words {quoted(self.words or ())}"
            )
        places = as_float(number)[:, None]
        found: Any = np.where(np.isnan(places), np.nan, places == np.arange(len(self.words or ())))
        return found

    def _refuse(self, texts: Any, odd: str, what: str, origin: Origin) -> None:
        row = require("pyarrow.compute").index(texts, odd).as_py()
        raise ValueError(
            f"{origin.place}{origin.row(row)}: {odd!r} in column {self.name!r} is none of the "
            f"{what} that others are: na_values=[{odd!r}] if it means that a value is missing, "
            f"words=[{self.name!r}] for a category, drop=[{self.name!r}] to leave it out"
        )


def without(column: Any, missing: Sequence[str]) -> Any:
    """:return: a column of pyarrow, null where texts mean that a value is missing."""
    if not is_text(column.type):
        return column
    arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
    texts = as_text(column)
    if texts.offset:  # `if_else` of pyarrow 15 forgets where a part of an array begins
        texts = texts.take(arrow.array(np.arange(len(texts))))
    none = compute.is_in(texts, value_set=arrow.array([*missing]))
    return compute.if_else(none, arrow.scalar(None, arrow.string()), texts)


def as_float(column: Any) -> Any:
    """:return: [n], a column of pyarrow; what is missing is NaN."""
    arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
    numbers = compute.cast(column, arrow.float64(), safe=False)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)


def _with_day(column: Any) -> Any:
    """:return: times of the day as those of the first day."""
    if not is_text(column.type):
        return column
    replace = require("pyarrow.compute", extra="files").replace_substring_regex
    hours = replace(column, r"^(\d:)", r"0\1")
    return replace(hours, r"^(\d\d:)", r"1970-01-01 \1")


class Columns:
    """
    Columns by name, of files and of data frames alike.

    :ivar features: names of the columns of X; "column=word" is 1 where the column has this word.
    :ivar classes: the label of each class 0..C-1, if labels become numbers; else None.
    """

    def __init__(
        self,
        found: Mapping[str, Column],
        target: str | None,
        weight: str | None,
        features: Iterable[str],
        classes: Any,
    ) -> None:
        """
        :param found: what becomes of columns; those that are not named are numbers.
        :param features: names of the columns of X, in their order.
        :param classes: as of `ClassNumbers`, or None.
        """
        if classes is not None and target is None:
            raise ValueError("classes are of the labels: give target=..., the name of their column")
        if isinstance(features, str):
            raise ValueError(f"features must be a list of names, got the string {features!r}")
        self.target, self.weight, self.features = target, weight, tuple(features)
        self._numbers = None if classes is None else ClassNumbers(classes)
        self.classes = None if self._numbers is None else self._numbers.names
        self._found = dict(found)
        self._of = {name: column.name for column in found.values() for name in column.features}

    @property
    def read(self) -> list[str]:
        """:return: names of all columns that are read."""
        own = dict.fromkeys(self._of.get(name, name) for name in self.features)
        return [*own, *(name for name in (self.target, self.weight) if name is not None)]

    @property
    def kinds(self) -> list[Column]:
        """:return: the columns that X is of, in their order."""
        own = dict.fromkeys(self._of.get(name, name) for name in self.features)
        return [self._column(name) for name in own]

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
                raise ValueError(f"{where} {what} {quoted(wrong)}; {has}")
        doubled = sorted({name for name in self.read if [*names].count(name) > 1})
        if doubled:
            raise ValueError(f"{where} has several columns of the name {quoted(doubled)}")
        named = [n for n in (*self.features, self.target, self.weight) if n is not None]
        if not self.features:
            raise ValueError(f"{where} has no columns for X beside target and weight")
        if len({*named}) != len(named) or len({*self.read}) != len(self.read):
            raise ValueError(
                f"features {quoted(self.features)}, target {self.target!r} and weight "
                f"{self.weight!r} must be different columns"
            )

    def piece(self, table: Any, origin: Origin) -> tuple[Any, Any, Any, Origin]:
        """
        :param table: of pyarrow, with at least the columns that are read.
        :return: X, labels, weights, and where they are from.
        :raise ValueError: for values that are not what the column's others are.
        """
        origin = origin._replace(columns=self.features)
        parts = [(column, table.column(column.name)) for column in self.kinds]
        made = [(column.features, column.values(cells, origin)) for column, cells in parts]
        X = {name: values[:, place] for names, values in made for place, name in enumerate(names)}
        Y = self._labels(table.column(self.target), origin) if self.target is not None else None
        weight = self.weight and self._column(self.weight).values(table.column(self.weight), origin)
        return np.stack([X[name] for name in self.features], axis=1), Y, weight, origin

    def _column(self, name: str) -> Column:
        return self._found.get(name, Column(name))

    def _labels(self, cells: Any, origin: Origin) -> Any:
        if self._numbers is None:
            return self._column(str(self.target)).values(cells, origin)
        return self._numbers(cells, origin)[:, None]


def chosen_words(features: Sequence[str], names: Sequence[str]) -> dict[str, Column]:
    """:return: the columns of words that features "column=word" name."""
    pairs = [pair for name in features if (pair := word_of(str(name), names)) is not None]
    words: dict[str, list[str]] = {}
    for column, word in pairs:
        words.setdefault(column, []).append(word)
    return {name: Column(name, tuple(own)) for name, own in words.items()}
