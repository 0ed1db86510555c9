"""Columns of a table, read as numbers, words or dates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..optional import Later
from .cells import arrow, as_float, as_labels, as_text, as_truth, compute, is_a, without
from .labels import class_list
from .paths import listed, own_columns, short, shortened, with_nearest
from .spelling import MISSING, PLAIN, Spelling

if TYPE_CHECKING:  # `data` needs TensorFlow
    from ..data.batch import Origin

pandas = Later("pandas", "files")
Names = Sequence[str]
#: The mark of a column of true and false, which are read as 1 and 0.
TRUTH = "true and false"
_ADVICE = "give na_values=[...] if it means a missing value, else correct the file"
_NEW_WORD = "give na_values=[...] to treat it as missing, or fit again to rows that hold it"


class Column(NamedTuple):
    """How to read a column, as one or more columns of X or as labels."""

    name: str
    words: tuple[str, ...] | None = None  #: each is a 0/1 feature "name=word"; None: one feature
    classes: tuple[Any, ...] = ()  #: labels, converted to 0..C-1; empty if labels are numbers
    spelling: Spelling = PLAIN  #: format of numbers in strings
    date: bool = False  #: whether values become days since 1970
    mark: str = ""  #: the kind of all values, such as "times of day" or `TRUTH`; "" if ordinary
    missing: tuple[str, ...] = ("",)  #: strings for missing values, see `without`

    @property
    def features(self) -> list[str]:
        """:return: names of the columns of X."""
        return [self.name] if self.words is None else [f"{self.name}={word}" for word in self.words]

    @property
    def about(self) -> str:
        """:return: a description for users."""
        if self.words is not None:
            return f"words of {self.name}"
        if self.mark == TRUTH:
            return f"{TRUTH}, as 1 and 0"
        return "dates, as days since 1970" if self.date else self.spelling.about

    def values(self, cells: Any, origin: Origin) -> Any:
        """
        :return: [n, K], the column's values; NaN for missing values.
        :raise ValueError: for a value of another kind; the message names its place.
        """
        if self.words is not None:
            known = cells if is_a(cells.type) else without(cells, self.missing)
            return self._of_words(as_text(known), self.words, origin)
        if self.classes:
            return self._labels(as_labels(cells), origin)[:, None]
        if self.date:
            return self._days(cells, origin)[:, None]
        values = self._numbers(cells, origin)
        if (odd := np.isinf(values)).any():  # here, because `impute` precedes the check of X
            raise self._refusal(cells, int(odd.argmax()), f"is not finite: {_ADVICE}", origin)
        if self.mark == TRUTH and (odd := ~np.isin(values, (0, 1)) & ~np.isnan(values)).any():
            what = f"is neither true nor false, unlike the rest of its column: {_ADVICE}"
            raise self._refusal(cells, int(odd.argmax()), what, origin)
        return values[:, None]

    def _numbers(self, cells: Any, origin: Origin) -> Any:
        if not is_a(cells.type):
            return as_float(without(cells, self.missing))
        texts = as_text(cells)
        numbers = None
        if self.missing == MISSING:  # first with missing values: they are rare
            numbers = self.spelling.read(texts)
        if numbers is None:
            texts = without(texts, self.missing)
            numbers = self.spelling.read(texts)
            numbers = as_truth(texts) if numbers is None else numbers
        if numbers is None:
            row = compute.index(texts, self.spelling.odd(texts)[0]).as_py()
            what = f"does not fit the column's {self.spelling.about}: {_ADVICE}"
            raise self._refusal(texts, row, what, origin)
        return as_float(numbers)

    def _days(self, cells: Any, origin: Origin) -> Any:
        texts = without(as_text(cells), self.missing)
        values, lost = days(texts)
        if lost.any():
            what = f"is neither a date like 2020-01-31 12:30 nor a time like 15:30: {_ADVICE}"
            raise self._refusal(texts, int(lost.argmax()), what, origin)
        if (row := first_unlike(texts, self.mark)) is not None:
            raise self._refusal(texts, row, f"is unlike the {self.mark} before it", origin)
        return values

    def _of_words(self, texts: Any, words: Sequence[str], origin: Origin) -> Any:
        known = dict.fromkeys([None, *self.missing], np.nan)
        known |= {word: place for place, word in enumerate(words)}
        what = f"is not one of the words {shortened(words)}: {_NEW_WORD}"
        number = self._places(texts, known, what, origin)[:, None]
        return np.where(np.isnan(number), np.nan, number == np.arange(len(words)))

    def _labels(self, labels: Any, origin: Origin) -> Any:
        classes = [*self.classes]
        what = f"is not one of the classes {shortened(classes)}: "
        what += 'give all classes, or classes="auto"'
        if is_a(labels.type) or isinstance(classes[0], str):
            labels = as_text(labels)
            classes = [*map(str, classes)]
        elif is_a(labels.type, "float"):  # rounded as in the file
            classes = arrow.array(classes, labels.type).to_pylist()
        known = {name: number for number, name in enumerate(classes)}
        return self._places(labels, known, what, origin)

    def _places(self, cells: Any, known: Mapping[Any, float], what: str, origin: Origin) -> Any:
        """:return: [n], `known[value]` for each value, null as None."""
        coded = cells.dictionary_encode()
        found = [known.get(value, -1) for value in [*coded.dictionary.to_pylist(), None]]
        places = np.array(found, np.float64)[np.asarray(coded.indices.fill_null(-1))]
        if (places < 0).any():
            raise self._refusal(cells, int(np.argmax(places < 0)), what, origin)
        return places

    def _refusal(self, cells: Any, row: int, what: str, origin: Origin) -> ValueError:
        shown = f"{'label ' if self.classes else ''}{short(cells[row].as_py())}"
        where = f"{origin.place}{origin.row(row)}"
        return ValueError(f"{where}: {shown} in column {self.name!r} {what}")


def times(texts: Any) -> Any:
    """:return: the mark of every date or time in a pyarrow column."""
    zoned = compute.match_substring_regex(texts, r"[T :]\d\d.*(Z|[+-]\d\d(:?\d\d)?)$")
    clock = compute.match_substring_regex(texts, r"^\d?\d:")
    kind = compute.if_else(clock, "times of day", "dates")
    zone = compute.if_else(zoned, " with a time zone", "")
    return compute.binary_join_element_wise(kind, zone, "")


def first_unlike(texts: Any, mark: str) -> int | None:
    """:return: the first row with another mark; None if all have this mark, or if `mark` is ""."""
    row = compute.index(compute.not_equal(times(texts), mark), True).as_py() if mark else -1
    return None if row < 0 else int(row)


def days(texts: Any) -> tuple[Any, Any]:
    """:return: days since 1970, [n]; whether strings are not ISO 8601 dates or times."""
    hours = compute.replace_substring_regex(texts, r"^(\d?\d:)", r"1970-01-01 \1").to_pandas()
    dated = hours.where(hours.str.match(r"\s*[+-]?\d", na=False))  # pandas reads "now" and "today"
    stamps = pandas.to_datetime(dated, format="ISO8601", errors="coerce", utc=True)
    start = pandas.Timestamp(0, tz="UTC").as_unit("s")  # in nanoseconds, years end in 2262
    values = (stamps - start) / pandas.Timedelta(days=1).as_unit("s")
    return values.to_numpy(), (stamps.isna() & hours.notna()).to_numpy()


class Columns:
    """
    Named columns of files and data frames.

    :ivar features: names of the columns of X; "column=word" is 1 where the column has this word.
    :ivar classes: the labels of classes 0..C-1; None if labels are not converted.
    :ivar kinds: the table's columns for X, in order.
    :ivar about_labels: a description of labels that are numbers.
    :ivar read: names of all columns to read.
    """

    def __init__(
        self,
        found: Mapping[str, Column],
        target: str | None,
        weight: str | None,
        features: Iterable[str],
        classes: Any,
    ) -> None:
        """:param found: how to read columns, by name; columns not in it hold numbers."""
        if classes is not None and target is None:
            raise ValueError("classes needs labels: give target=..., the name of the label column")
        self.target = target
        self.weight = weight
        self.features = tuple(features)
        self.classes = None if classes is None else class_list(classes)
        of = {name: column.name for column in found.values() for name in column.features}
        names = dict.fromkeys(of.get(name, name) for name in self.features)
        self.read = [*names, *(name for name in (target, weight) if name is not None)]
        self._columns = {name: found.get(name, Column(name)) for name in self.read}
        self.kinds = [self._columns[name] for name in names]
        self.about_labels = "" if target is None else self._columns[target].about
        if self.classes is not None:
            self._columns[str(target)] = Column(str(target), classes=tuple(self.classes))

    def check_names(self, names: Sequence[str], where: str, exactly: bool = False) -> None:
        """
        :param where: the table's name in errors.
        :param exactly: whether unused columns are an error.
        :raise ValueError: for missing or duplicate columns.
        """
        there = Counter(names)
        own = {*self.read}
        read = f"columns {shortened(self.read)} are read"
        if lost := [name for name in self.read if name not in there]:
            others = "" if lost in ([self.target], self.read) else f"; {read}"
            raise ValueError(f"{where} lacks {with_nearest(lost, names)}{others}")
        if more := [name for name in own_columns(names) if exactly and name not in own]:
            raise ValueError(f"{where} also has {shortened(more)}; {read}")
        if twice := [name for name in self.read if there[name] > 1]:
            free = exactly and not {*twice} & {self.target, self.weight}
            drop = f", or drop={twice!r} to leave all of them out" if free else ""
            raise ValueError(
                f"{where} has several columns named {shortened(twice)}: rename all but one of them "
                f"in its header{drop}"
            )
        named = [n for n in (*self.features, self.target, self.weight) if n is not None]
        if not self.features:
            raise ValueError(f"{where} has no columns for X besides target and weight")
        if len({*named}) != len(named) or len(own) != len(self.read):
            raise ValueError(
                f"features {shortened(self.features)}, target {self.target!r} and weight "
                f"{self.weight!r} must be different columns"
            )

    def piece(self, table: Any, origin: Origin) -> tuple[Any, Any, Any, Origin]:
        """
        :return: X, labels and weights of a table with the columns `read`, and their origin.
        :raise ValueError: for values of the wrong kind.
        """
        origin = origin._replace(columns=self.features)
        made: dict[Any, Any] = {
            name: column.values(table.column(name), origin)
            for name, column in self._columns.items()
        }
        X = dict[str, Any]()
        for column in self.kinds:
            X |= zip(column.features, made[column.name].T)
        rows = np.stack([X[name] for name in self.features], axis=1)
        return rows, made.get(self.target), made.get(self.weight), origin

    def gaps(self, X: Any) -> int:
        """:return: the number of missing table cells in the rows X [n, D]."""
        places = {name: place for place, name in enumerate(self.features)}
        first = [places[kind.features[0]] for kind in self.kinds]  # all are NaN, or none
        return int(np.isnan(X[:, first]).sum())

    def about_gaps(self, number: int, marked: Any) -> list[str]:
        """:return: a note on missing values; `marked` features [D] have indicator columns."""
        marks = [name for name, mark in zip(self.features, marked) if mark]
        beside = f"; columns of 0 and 1 mark them in {listed(marks)}" if marks else ""
        return [f"medians replace {number} missing values{beside}"] if number else []


def chosen_words(
    features: Names, names: Names, missing: Names = ("",), told: Names = ()
) -> dict[str, Column]:
    """
    :param told: the columns that may be behind features; empty: all.
    :return: the columns of a table (with `names`) behind features "column=word", by name.
    """
    words = dict[str, list[str]]()
    there = {*names}
    behind = {*told} or there
    for feature in (str(one) for one in features if one not in there):
        cuts = [cut for cut, sign in enumerate(feature) if sign == "=" and feature[:cut] in behind]
        for cut in cuts[-1:]:  # the longest name
            words.setdefault(feature[:cut], []).append(feature[cut + 1 :])
    return {name: Column(name, tuple(own), missing=(*missing,)) for name, own in words.items()}
