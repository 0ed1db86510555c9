"""The values of a column, and how to read them or why they cannot be read."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from . import oddities
from .cells import DATES, NUMBERS, arrow, as_labels, as_text, as_truth, compute, is_a, without
from .columns import TRUTH, Column, days, first_unlike, times
from .formats import Format
from .labels import MOST_CLASSES, as_written, check_are_classes
from .paths import short, shortened
from .reading import Reading
from .spelling import MISSING, PLAIN, Spelling, chosen, in_doubt, possible

#: Largest number of different words in a column.
MOST_WORDS = 50
#: A number with a sign or a unit: "$5", "<3", "1.2 %", "70kg", "(5)".
_WITH_UNIT = r"^[^\w\s]{0,2}\s?[+-]?\d[\d.,' ]*\s?[^\w\s]{0,2}[^\W\d_]{0,4}$"
#: Times and durations; dates in ISO and other orders.
_TIMES = r"^\d{1,3}:\d\d(:\d\d[.\d]*)?$"
_DATES = rf"{_TIMES}|^\d{{4}}-\d\d?-\d\d?([T ].*)?$|^\d\d?[./-]\d\d?[./-]\d\d(\d\d)?$"
_DATES += r"|^\d\d?:\d\d(:\d\d)?\s?[AaPp][Mm]$"
_AS_DATES = "dates are read as in 2020-01-31 12:30 and times as in 15:30: convert the column, "
#: Largest number of unfitting strings to show in an error.
_MOST_ODD = 3
#: Largest number of characters of a string that may mean a missing value.
_MOST_SIGNS = 40
#: Values have units if there are this many different values, and this share of them has a unit.
_FEWEST_UNITS = 5
_MOST = 0.8
#: The mark of ambiguous numbers: 1.234 may mean 1234.
GROUPED = "numbers such as 1.234"


class Survey:
    """
    The values of a column.

    :ivar seen: distinct values, each with its first row; None is a missing value. After
        `MOST_CLASSES` values, only a few are added: missing values, the column's name, texts that
        fit no number format, and rare oddities.
    :ivar order: the values in the order of their type, if their type has an order.
    """

    def __init__(self, name: str, file: Format, reading: Reading, files: list[Any]) -> None:
        """:param files: pairs of a file's path and the number of rows before it; filled later."""
        self.name = name
        self.kind = file.types[name]
        self.rows = 0
        self._reading = reading
        self._files = files
        self._order = file.dates.get(name)
        self._known = (reading.marks or {}).get(name, "")
        declared = name in file.words and not reading.is_prediction
        self._beside = name in (reading.target, reading.weight)
        self._told = (declared and not self._beside) or name in reading.told_words
        self.empty = reading.empty
        self.missing = MISSING if reading.na_values is None else self.empty  # for numbers
        self.fitting = possible(reading.decimal, reading.thousands)
        self.seen = dict[Any, int]()
        self.order = list[Any]()
        self._lost: set[Any] = {None}  # values that mean a missing number or date

    def add(self, cells: Any) -> None:
        """:raise ValueError: for numbers in one file and strings in another."""
        same = is_a(cells.type, NUMBERS) == is_a(self.kind, NUMBERS)
        if not same and cells.null_count < len(cells):
            raise ValueError(
                f"column {self.name!r} is of type {cells.type} in {self._files[-1][0]}, but "
                f"{self.kind} in the files before it: save all with the same type"
            )
        fitting = self.fitting
        if not (self.many and self._are_plain(cells)):
            self._look(as_labels(cells))
        if self.many and fitting and not self.fitting:
            self._keep_odd(cells, fitting[0])
        if self.many and not self._reading.is_prediction:
            self._look_for_rare(cells)
        self.rows += len(cells)

    def _keep_odd(self, cells: Any, spelling: Spelling) -> None:
        texts = without(as_text(cells), self.missing)
        for text in spelling.odd(texts)[:_MOST_ODD]:
            self.seen.setdefault(text, self.rows + compute.index(texts, text).as_py())

    def _look_for_rare(self, cells: Any) -> None:
        if self.missing != MISSING:  # the usual texts are never rare numbers
            cells = self._fitted(cells)
        for row in oddities.rare_rows(cells):
            self.seen.setdefault(cells[row].as_py(), self.rows + row)

    def _are_plain(self, cells: Any) -> bool:
        """:return: True for numbers without missing values, the usual case."""
        if self.missing != MISSING or PLAIN not in self.fitting:
            return False
        numbers = PLAIN.read(as_text(cells)) if is_a(self.kind) else cells
        return numbers is not None and not compute.any(numbers.is_null(nan_is_null=True)).as_py()

    def _look(self, cells: Any) -> None:
        where = np.arange(len(cells))
        if self.many:
            where = np.flatnonzero(self._fitted(cells).is_null(nan_is_null=True))
        coded = cells.take(arrow.array(where)).dictionary_encode()
        values = [*coded.dictionary.to_pylist(), None]
        if coded.type.ordered:
            self._learn_order(values[:-1])
        lost = self._fitted(coded.dictionary).is_null(nan_is_null=True).to_pylist()
        self._lost |= {value for value, is_lost in zip(values, lost) if is_lost}
        codes, rows = np.unique(coded.indices.fill_null(-1), return_index=True)
        for code, row in zip(codes.tolist(), where[rows].tolist()):
            value = values[code] if values[code] == values[code] else None  # NaN
            if not self.many or value in self._lost or value == self.name:
                self.seen.setdefault(value, self.rows + row)

    def _learn_order(self, order: list[Any]) -> None:
        """:raise ValueError: unless `order` is a part of the order so far, or extends that."""
        short, long = sorted((self.order, order), key=len)
        if [value for value in long if value in short] != short:
            raise ValueError(
                f"column {self.name!r} has the categories {shortened(order)} in "
                f"{self._files[-1][0]}, but {shortened(self.order)} before: save all files with "
                "the same categories"
            )
        self.order = long

    def _fitted(self, cells: Any) -> Any:
        """:return: the values, null if missing; drops spellings that do not fit from `fitting`."""
        cells = without(as_text(cells) if is_a(self.kind) else cells, self.missing)
        if is_a(self.kind):
            self.fitting = [one for one in self.fitting if one.read(cells) is not None]
        return cells

    @property
    def many(self) -> bool:
        """:return: True if there are too many values for classes."""
        return len(self.seen) > MOST_CLASSES

    @property
    def is_named_by_a_value(self) -> bool:
        """:return: True if the name is one of several values, as in a file without a header."""
        return self.name in self.seen and len({*self.seen} - self._lost) > 1

    @property
    def oddities(self) -> list[str]:
        """:return: the keys of `ODDITIES` that apply to the values as numbers."""
        texts = [str(one).strip() for one in self.seen if one not in self._lost]
        return oddities.found(texts, self.rows)

    def missing_values(self, of_words: bool) -> Collection[Any]:
        """:return: values that mean a missing value, for words or for numbers and dates."""
        return (None, *self.empty) if of_words and is_a(self.kind) else self._lost

    def gap(self, missing: Collection[Any]) -> str | None:
        """:return: the place of the first of these missing values, or None."""
        found = [value for value in missing if value in self.seen]
        return self.place(min(found, key=self.seen.__getitem__)) if found else None

    def place(self, value: Any) -> str:
        """:return: the first row of a value, with its file if there are several files."""
        row = self.seen[value]
        path, before = [each for each in self._files if each[1] <= row][-1]
        return f"row {row - before}" + (f" of {path}" if len(self._files) > 1 else "")

    def column(self, comma: bool, point: bool) -> Column:
        """
        :param comma: whether another column has decimal commas.
        :param point: whether another column has decimal points.
        :return: the way to read the column.
        :raise ValueError: if it cannot be read; the message has the reason and advice.
        """
        if self.name in self._reading.dates:
            return self._days()
        values = [value for value in self.seen if value not in self._lost]
        if is_a(self.kind, DATES):
            raise self._of_dates(values)
        if self._told:
            return self._of_words()
        if is_a(self.kind, NUMBERS):
            mark = TRUTH if is_a(self.kind, "bool") else self._known
            return Column(self.name, mark=mark, missing=self.missing)
        if not is_a(self.kind):
            raise self._refusal(f"{self.kind}, but numbers or words are needed", [])
        if self.fitting:
            return self._number(comma, point)
        if as_truth(_array(values)) is None:
            self._check_words(values)
            return self._of_words()
        if self._reading.marks is not None and self._known != TRUTH:
            raise self._refusal(TRUTH, values[:1], "convert them to numbers, as in training, ")
        return Column(self.name, mark=TRUTH, missing=self.missing)

    def _days(self) -> Column:
        if self._order:
            raise self._refusal(f"dates, declared as {self._order}", [], _AS_DATES)
        texts = without(as_text(arrow.array([*self.seen])), self.missing)
        mark = self._mark_of_times(texts)
        _, lost = days(texts)
        if odd := [value for value, no_date in zip(self.seen, lost) if no_date]:
            few = len(odd) <= 3 and len(odd) < len(self.seen) / 2
            none = f"give na_values={odd!r} if these are missing values, " if few else ""
            raise self._refusal("numbers" if self.fitting else "words", odd[:3], _AS_DATES + none)
        return Column(self.name, date=True, mark=mark, missing=self.missing)

    def _mark_of_times(self, texts: Any) -> str:
        """:return: the mark that these times share with the times in training."""
        texts = texts.drop_null()
        found = times(texts).unique().to_pylist()
        known = self._known
        if len(found) > 1:
            such = [texts[first_unlike(texts, mark)].as_py() for mark in found[1::-1]]
            raise self._refusal(f"{found[0]} and {found[1]}", such, "write all in one way, ")
        if found and known not in ("", *found):
            how = f"training had {known}, so convert the column, "
            raise self._refusal(found[0], texts.to_pylist()[:1], how)
        return found[0] if found else known

    def _of_words(self) -> Column:
        missing = self.missing_values(of_words=True)
        found = [value for value in self.seen if value not in missing]
        if not found:  # such as an attribute of an ARFF file that is ? in every row
            return Column(self.name, missing=self.missing)
        if self._reading.marks is not None and self.name not in self._reading.told_words:
            how = f"convert them to {self._known or 'numbers'}, as in training, "
            raise self._refusal("words", found[:1], how)
        most = MOST_CLASSES if self.name in self._reading.told_words else MOST_WORDS
        if len(found) > most:
            raise self._refusal(f"more than {most} different words", found[:1], self._as_words)
        if self._beside or (self._reading.words is False and not self._told):
            how = "give words=True for columns of 0 and 1, " if self._as_words else ""
            raise self._refusal("words where numbers are needed", found[:1], how)
        words = as_text(arrow.array(found)).to_pylist()
        return Column(self.name, tuple(sorted(words)), missing=self.empty)

    def _number(self, comma: bool, point: bool) -> Column:
        known = [way for way in self.fitting if way.about == self._known]  # as in training
        doubt = comma or self._known not in ("", GROUPED) or (self._may_be_grouped() and not point)
        spelling = known[0] if known else chosen(self.fitting, doubt)
        if spelling is None:
            sign = "." if PLAIN in self.fitting else ","
            such = [text for text in self.seen if text not in self._lost and sign in text]
            whole = such[0].strip().replace(sign, "") if such else "1234"  # `seen` is full
            how = f"give thousands={sign!r} if the first is {whole}, else decimal={sign!r}, "
            raise self._refusal("numbers that can be read in two ways", such[:2], how)
        of_points = GROUPED if in_doubt(self.fitting) else ""
        mark = self._known or (of_points if spelling == PLAIN else spelling.about)
        return Column(self.name, spelling=spelling, mark=mark, missing=self.missing)

    def _may_be_grouped(self) -> bool:
        """:return: True if all numbers without a point are below 1000, as in 1.755, 623."""
        if self._reading.is_prediction:  # decided in training
            return False
        whole = [one.strip(" +-") for one in {*self.seen} - self._lost if "." not in one]
        return 0 < max(map(len, whole), default=0) <= 3

    def _check_words(self, texts: list[str]) -> None:
        """:raise ValueError: for dates, for numbers among words, and for numbers with units."""
        if _share(_DATES, texts) >= _MOST:
            raise self._of_dates(texts)
        odd = texts
        for way in possible():
            odd = way.odd(_array(odd))  # in the end, texts that fit none
        if not odd:
            raise self._of_numbers(texts)
        words = self._as_words
        for way in (Spelling(decimal, sign) for decimal in ".," for sign in " '_"):
            if not way.odd(_array(texts)):
                what = f"numbers with {way.thousands!r} between thousands"
                how = f"thousands={way.thousands!r}" + " with decimal=','" * (way.decimal == ",")
                raise self._refusal(what, odd[:2], f"give {how}, {words}")
        has_numbers = len(odd) < len(texts)
        if (has_numbers or len(texts) >= _FEWEST_UNITS) and _share(_WITH_UNIT, odd) >= _MOST:
            how = f"write plain numbers, {words}"
            raise self._refusal("numbers with signs or units", odd[:2], how)
        if has_numbers:
            first = {self.seen[text] for text in odd} == {*range(len(odd))}
            how = "delete the first rows if they belong to the header, " * first
            how += self._as_missing(odd) + words
            raise self._refusal("numbers and words", odd[:_MOST_ODD], how)

    def _of_numbers(self, texts: list[str]) -> ValueError:
        """:return: an error; each string is a number, but no spelling fits all of them."""
        way = next(one for one in possible() if not one.odd(_array(texts[:1])))
        shown = [texts[0], *way.odd(_array(texts))[:1]]
        if len(shown) > 1:
            return self._refusal("numbers that are written in several ways", shown)
        told = "numbers that do not match the options decimal and thousands,"
        return self._refusal(told, shown, f"give decimal={way.decimal!r}, ")

    @property
    def _as_words(self) -> str:
        """:return: advice to read the column as a category; empty if impossible."""
        never = self._beside or self._reading.is_prediction or self.many
        return "" if never else f"give words=[{self.name!r}] for a category, "

    def _as_missing(self, odd: list[str]) -> str:
        given = self._reading.na_values
        usual = [text for text in odd if text in MISSING]
        if given is not None and usual:
            every = [*given, *usual]
            return f"give na_values={every!r} for missing values (replaces the usual list), "
        few = len(odd) <= 3 and not any("," in text or len(text) > _MOST_SIGNS for text in odd)
        if not few or as_truth(_array(odd)) is not None:
            return ""
        return f"give na_values={odd!r} if they mean a missing value, "

    def _of_dates(self, texts: Sequence[str]) -> ValueError:
        """:return: an error; it advises `dates` only if all strings are dates."""
        _, lost = days(_array(texts))
        if not lost.any():
            how = f"give dates=[{self.name!r}] for days since 1970, "
            return self._refusal("dates or times", texts[:1], how)
        such = [*dict.fromkeys((texts[0], texts[int(lost.argmax())]))]
        if _share(_TIMES, texts) == 1:
            how = f"write numbers instead, such as 36.25 for 36:15, {self._as_words}"
            return self._refusal("times beyond 24:00", such[-1:], how)
        how = f"write 2020-01-31 or 15:30 instead and give dates=[{self.name!r}], "
        return self._refusal("dates or times", such, how)

    def _refusal(self, what: str, such: Sequence[str], how: str = "") -> ValueError:
        shown = ", ".join(f"{short(text)} ({self.place(text)})" for text in such)
        what = f"{what} such as {shown}" if such else what
        chosen = self._reading.features is not None
        drop = "correct the file" if chosen else f"give drop=[{self.name!r}] to leave it out"
        drop = f"or {drop}" if how else drop
        last = {
            self._reading.target: 'give classes="auto" for classes',
            self._reading.weight: "weights must be numbers",
        }.get(self.name, drop)
        return ValueError(f"column {self.name!r} holds {what}: {how}{last}")

    def classes(self) -> list[Any]:
        """
        :return: the labels, as numbers if written as in Python, else as strings; sorted, or in the
            order of their type.
        :raise ValueError: for a missing label, too many labels, or regression targets.
        """
        self._check_labels()
        labels = as_written(self.seen)
        what = f"column {self.name!r}"
        self.order = [label for label in self.order if label in self.seen]
        if len(self.order) == len(labels):
            labels = self.order
        elif self.order:
            raise ValueError(f"{what} is an ordered category in some files only: save all alike")
        check_are_classes(labels, self.rows, what, () if self._reading.classes == "any" else labels)
        if all(isinstance(one, str) or one == np.floor(one) for one in labels):
            return labels
        if all(isinstance(one, str) for one in self.seen):
            return [*map(str, labels)]
        kind = getattr(self.kind, "value_type", self.kind)  # a shorter float has fewer digits
        return list(as_text(arrow.array(np.array(labels, kind.to_pandas_dtype()))).to_pylist())

    def _check_labels(self) -> None:
        told = self.name in self._reading.told_words  # then every text is a label
        blank = [one for one in self.seen if str(one).isspace()]
        gap = self.gap((None, "") if told else (*self.missing_values(of_words=True), *blank))
        if gap is not None:
            what = f"({gap}, column {self.name!r})"
            raise ValueError(f"the label is empty {what}; drop such rows first")
        for label in () if told else self.seen:
            self._check_label(label)
        if self.many:
            raise ValueError(
                f"column {self.name!r} holds more than {MOST_CLASSES} different values, too many "
                "for classes; is target the right column?"
            )

    def _check_label(self, label: Any) -> None:
        shown = f"the label {label!r} ({self.place(label)}) in column {self.name!r}"
        if label in self.missing and label not in ("-", "."):
            how = f"drop such rows, or give words=[{self.name!r}] if it is a label"
            raise ValueError(f"{shown} may mean a missing label: {how}")
        if label in ("-0", "-0.0"):
            raise ValueError(f"{shown} is a negative zero, another class than 0: write 0")


def _array(texts: Sequence[str]) -> Any:
    return arrow.array([*texts], "string")


def _share(pattern: str, texts: Sequence[str]) -> float:
    return sum(bool(re.search(pattern, text)) for text in texts) / max(len(texts), 1)
