"""What the values of a column are like, and what it is therefore read as, or why it is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..optional import require
from .columns import Column, without
from .labels import MOST_CLASSES, as_text, as_written, is_plain, is_text
from .spelling import DATES, MISSING, PLAIN, TRUTH, WITH_UNIT, chosen, possible

#: A text column of more distinct words than this is not a category.
MOST_WORDS = 50
#: From so many different values on, of which so large a part have a unit, they are numbers.
_FEWEST_UNITS, _MOST = 5, 0.8
#: Of the texts for a missing number, those that may well be labels.
_LABELS = {"-", "."}
_words, _drop = "words=[{name!r}] for a category, ", "drop=[{name!r}] to leave it out"


class Survey:
    """
    What is seen of a column.

    :ivar gap: the first row without a value; None: there is none; hole: without a number.
    :ivar seen: different values, not of all rows if they are more than `MOST_CLASSES`; texts of
        all but numbers.
    :ivar order: of them, as their type says, if it does.
    """

    def __init__(
        self,
        name: str,
        kind: Any,
        missing: Sequence[str] | None,
        told: tuple[Any, Any] = (None, None),
    ) -> None:
        """
        :param kind: its type of pyarrow.
        :param missing: texts that stand for nothing; None: `MISSING`, but only among numbers.
        :param told: decimal and thousands, as far as the user says.
        """
        self.name, self.kind = name, kind
        self.empty = ("", *(missing or ()))
        self.missing = MISSING if missing is None else self.empty
        self.fitting, self.rows = possible(*told), 0
        self.gap: int | None = None
        self.hole: int | None = None
        self.seen, self.order = dict[Any, None](), list[Any]()
        self._parts: list[tuple[int, Any]] = []

    def add(self, cells: Any) -> None:
        """See some rows."""
        usual = self.missing == MISSING  # of which none is a number
        if usual and self.many and PLAIN in self.fitting and _are_plain(cells):
            self.rows += len(cells)
            return
        if _is_ordered(cells.type):
            self.order = cells.dictionary.to_pylist()
        if not is_plain(cells.type):
            cells = as_text(cells)
        cells = without(cells, self.empty)
        numbers = without(cells, self.missing)
        self.gap = self._first_null(cells) if self.gap is None else self.gap
        self.hole = self._first_null(numbers) if self.hole is None else self.hole
        if is_text(self.kind):
            self.fitting = [one for one in self.fitting if one.fits(numbers)]
        if not self.many:
            before = len(self.seen)
            self.seen |= dict.fromkeys(cells.drop_null().unique().to_pylist()[: MOST_CLASSES + 1])
            if len(self.seen) > before:
                self._parts.append((self.rows, cells))
        self.rows += len(cells)

    def _first_null(self, cells: Any) -> int | None:
        index = require("pyarrow.compute", extra="files").index
        row = index(cells.is_null(nan_is_null=True), True).as_py()
        return self.rows + row if row >= 0 else None

    @property
    def many(self) -> bool:
        """:return: True for more different values than classes may have."""
        return len(self.seen) > MOST_CLASSES

    @property
    def has_zeros(self) -> bool:
        """:return: True for numbers such as 007."""
        return bool(self.fitting) and any(re.match(r"0\d", str(text)) for text in self.seen)

    @property
    def has_decimal_comma(self) -> bool:
        """:return: True if that is the only way to read it."""
        return {one.decimal for one in self.fitting} == {","}

    def column(self, words: bool, date: bool = False, comma: bool = False) -> Column:
        """
        :param words: whether its values are told to be words.
        :param date: whether they are told to be dates.
        :param comma: whether another column has a decimal comma.
        :return: the column as it is to be read.
        :raise ValueError: with the reason why not, and with what would work.
        """
        types = require("pyarrow", extra="files").types
        if date and not types.is_duration(self.kind):
            return Column(self.name, date=True, missing=self.missing)
        if types.is_temporal(self.kind) and not types.is_duration(self.kind):
            raise self._of_dates(str(next(iter(self.seen), "")))
        if not words and not is_text(self.kind):
            return self._typed(types)
        texts = [text for text in self.seen if text not in self.missing]
        if not words and (self.fitting or not texts or _share(TRUTH, texts) == 1):
            return self._number(comma)
        if not words:
            self._check_words(texts)
        if len(self.seen) > MOST_WORDS:
            raise self._refusal(f"more than {MOST_WORDS} different words", texts[:1], _drop)
        return Column(self.name, tuple(sorted(map(str, self.seen))), missing=self.empty)

    def _typed(self, types: Any) -> Column:
        kind = self.kind.value_type if types.is_dictionary(self.kind) else self.kind
        numbers = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal
        if any(is_(kind) for is_ in (*numbers, types.is_null)):
            return Column(self.name)
        raise self._refusal(f"{kind}, and numbers or words are needed", [], _drop)

    def _number(self, comma: bool) -> Column:
        spelling = chosen(self.fitting or possible(), comma)
        if spelling is None:
            such = [text for text in self.seen if "," in text or "." in text]
            how = "decimal=',' or thousands=',' (or '.') says which sign is which, "
            raise self._refusal("numbers that can be read in two ways", such[:2], how + _drop)
        return Column(self.name, spelling=spelling, missing=self.missing)

    def _check_words(self, texts: list[str]) -> None:
        """:raise ValueError: for dates, numbers among words, and numbers with units."""
        if _share(DATES, texts) >= _MOST:
            raise self._of_dates(texts[0])
        numbers = [text for text in texts if any(one.fits(_array([text])) for one in possible())]
        if len(numbers) == len(texts):
            way = next(one for one in possible() if one.fits(_array(numbers[:1])))
            shown = [numbers[0], *way.odd(_array(numbers))[:1]]
            raise self._refusal("numbers that are written in several ways", shown, _drop)
        odd = [text for text in texts if text not in numbers]
        if len(texts) >= _FEWEST_UNITS and _share(WITH_UNIT, odd) >= _MOST:
            how = "write plain numbers (or thousands='...' if it is that), " + _words + _drop
            raise self._refusal("numbers with signs or units", odd[:2], how)
        if numbers:
            few = len(odd) <= 3 and not any("," in text for text in odd)
            none = f"na_values={odd!r} if they mean that a value is missing, " if few else ""
            raise self._refusal("numbers, and others", odd[:3], none + _words + _drop)

    def _of_dates(self, such: str) -> ValueError:
        iso = re.search(r"^\d{4}-|^\d\d?:\d\d(:\d\d[.\d]*)?$", such)
        how = "dates=[{name!r}] makes them days since 1970, " if iso else "write 2020-01-31, "
        return self._refusal("dates or times", [such], how + _drop)

    def _refusal(self, what: str, such: Sequence[str], how: str) -> ValueError:
        named = f" such as {', '.join(map(self._place, such))}" if such else ""
        return ValueError(f"column {self.name!r} holds {what}{named}: {how.format(name=self.name)}")

    def _place(self, text: str) -> str:
        """:return: a value, and its first row."""
        index = require("pyarrow.compute", extra="files").index
        rows = ((start, index(as_text(cells), text).as_py()) for start, cells in self._parts)
        found = next((start + row for start, row in rows if row >= 0), None)
        return repr(text) if found is None else f"{text!r} (row {found})"

    def classes(self, where: str) -> list[Any]:
        """
        :param where: the file, for errors.
        :return: its values as labels: numbers that are written as Python does, else texts; sorted,
            or in the order that their type says.
        :raise ValueError: if a row has none, or if they are too many.
        """
        empty = [text for text in self.seen if text in self.missing and text not in _LABELS]
        if self.gap is not None:
            at = f"(row {self.gap}, column {self.name!r})"
            raise ValueError(f"{where}: the label is empty {at}; drop such rows first")
        if empty:
            raise ValueError(
                f"{where}: the label {self._place(empty[0])} in column {self.name!r} may say that "
                "there is none: drop such rows, or give na_values=[] if it is a label"
            )
        if self.many:
            raise ValueError(
                f"column {self.name!r} of {where} holds more than {MOST_CLASSES} different values: "
                "classes are expected; is target the right column?"
            )
        if self.order:
            return [label for label in self.order if label in self.seen]
        texts = all(isinstance(one, str) for one in self.seen)
        return as_written(self.seen) if texts else sorted(self.seen)


def _is_ordered(kind: Any) -> bool:
    return bool(require("pyarrow", extra="files").types.is_dictionary(kind) and kind.ordered)


def _are_plain(cells: Any) -> bool:
    """:return: True for numbers of which none is missing: in most columns most rows are that."""
    try:
        numbers = PLAIN.read(cells) if is_text(cells.type) else cells
    except ValueError:
        return False
    missing = numbers.is_null(nan_is_null=True)
    return not require("pyarrow.compute", extra="files").any(missing).as_py()


def _array(texts: Sequence[str]) -> Any:
    return require("pyarrow", extra="files").array([*texts], "string")


def _share(pattern: str, texts: Sequence[str]) -> float:
    return sum(bool(re.search(pattern, text)) for text in texts) / max(len(texts), 1)
