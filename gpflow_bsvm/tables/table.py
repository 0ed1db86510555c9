"""The table in some files: what is read of it, and what becomes of its columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from .columns import Column, Columns, chosen_words
from .formats import Format, open_format
from .labels import check_are_classes
from .paths import ROW_NAMES, listed, own_columns, quoted, target_among, word_of
from .survey import Survey

#: Rows that are read together where a column is looked at.
_ROWS = 2**15
#: Of columns that cannot be read, so many are named.
_MOST_REASONS = 3


class Table:
    """
    Files of equal columns, and what is read of them.

    :ivar names: of all columns of the first file.
    :ivar columns: of X, labels and weights.
    :ivar ordered: whether the order of the classes is stated, by the user or by their type.
    :ivar rows: number of rows that were looked at.
    :ivar zeros: columns of numbers that begin with 0, as codes do.
    :ivar holes: the first of these rows in which a column of X has no value, by its name.
    """

    def __init__(
        self,
        paths: Sequence[str],
        target: str | None = None,
        *,
        weight: str | None = None,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        classes: Sequence[Any] | str | None = None,
        words: bool | Sequence[str] = False,
        dates: Sequence[str] = (),
        na_values: Sequence[str] | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        whole: bool = True,
        **how: Any,
    ) -> None:
        """
        :param whole: whether to look at all rows if need be; False: at the first ones only.
        :param how: how texts are written, see `open_format`.

        Other arguments and errors as of `gpflow_bsvm.files.CSVFiles`.
        """
        for name, value in (("features", features), ("drop", drop), ("dates", dates)):
            if isinstance(value, str):
                raise ValueError(f"{name} must be a list of names, got the string {value!r}")
        self.formats: list[Format] = [open_format(path, features, **how) for path in paths]
        self.names, self.drop, self._exactly = self.formats[0].names, drop, features is None
        told = set() if isinstance(words, bool) else {*words}
        self._words, self._dates = told | self.formats[0].words, {*dates}
        self._may_be_words = words is not False
        self._missing, self._told = na_values, (decimal, thousands)
        others = [n for n in own_columns(self.names) if n not in (target, weight, *drop)]
        wanted = others if features is None else list(features)
        automatic = isinstance(classes, str) and classes == "auto" and target is not None
        all_rows = whole and (automatic or self._may_be_words)
        seen = self._look([*wanted, target, weight], all_rows)
        found = self._read_as([seen[name] for name in wanted if name in seen])
        self._note_holes(found, seen)
        self.zeros = [one.name for one in seen.values() if one.name in found and one.has_zeros]
        for one in (weight, target if classes is None else None):
            if one in seen:
                found[str(one)] = self._number(seen[one], one == target, [*seen.values()])
        if automatic:
            classes = self._classes(seen.get(target), whole)
        self.ordered = not automatic or (target in seen and bool(seen[target].order))
        found |= chosen_words(wanted, self.names)
        names = [one for name in wanted for one in self._features(name, found)]
        self.columns = Columns(found, target, weight, names, classes)
        self.check(self.formats[0])

    @property
    def _first(self) -> str:
        return f"file {self.formats[0].path}"

    def _look(self, names: Sequence[Any], all_rows: bool) -> dict[Any, Survey]:
        """:return: surveys of those columns among these names that there are."""
        kinds = self.formats[0].types
        names = [name for name in dict.fromkeys(names) if name in kinds]
        seen = {name: Survey(name, kinds[name], self._missing, self._told) for name in names}
        batches = (batch for one in self.formats for batch in self._batches(one, names, _ROWS))
        for batch in itertools.islice(batches, None if all_rows else 1):
            for name in names:
                seen[name].add(batch.column(name))
        self.rows = max((one.rows for one in seen.values()), default=0)
        return seen

    def _read_as(self, seen: Sequence[Survey]) -> dict[str, Column]:
        """:raise ValueError: with the reasons why some columns cannot be read."""
        found, reasons = dict[str, Column](), []
        comma = self._may_have_commas(seen)
        for one in seen:
            try:
                found[one.name] = self._one(one, comma)
            except ValueError as reason:
                reasons.append(str(reason))
        if reasons:
            more = len(reasons) - _MOST_REASONS
            also = f"; and {more} more columns" if more > 0 else ""
            raise ValueError(f"{self._first}: {'; '.join(reasons[:_MOST_REASONS])}{also}")
        return found

    def _may_have_commas(self, seen: Sequence[Survey]) -> bool:
        return self.formats[0].may_have_commas or any(one.has_decimal_comma for one in seen)

    def _one(self, seen: Survey, comma: bool = False) -> Column:
        column = seen.column(seen.name in self._words, seen.name in self._dates, comma)
        if column.words is not None and not self._may_be_words and seen.name not in self._words:
            raise ValueError(
                f"column {seen.name!r} holds words such as {column.words[0]!r}, and numbers are "
                f"needed: words=True makes columns of 0 and 1, drop=[{seen.name!r}] leaves it out"
            )
        return column

    def _number(self, seen: Survey, is_target: bool, beside: Sequence[Survey]) -> Column:
        """:return: a column of labels or weights."""
        column = seen.column(False, comma=self._may_have_commas(beside))
        if column.words is None:
            return column
        advice = 'give classes="auto" for classes' if is_target else "weights are numbers"
        raise ValueError(
            f"column {seen.name!r} of {self._first} holds words such as {column.words[0]!r}, and "
            f"numbers are needed: {advice}"
        )

    def _note_holes(self, found: dict[str, Column], seen: dict[Any, Survey]) -> None:
        rows = {
            name: seen[name].gap if one.words else seen[name].hole for name, one in found.items()
        }
        self.holes = {name: row for name, row in rows.items() if row is not None}

    def _classes(self, seen: Survey | None, whole: bool) -> list[Any] | None:
        """:return: the labels of a column; None if there is none, or not all rows are looked at."""
        if seen is None:
            return None
        labels = seen.classes(self._first)
        if not whole:
            return None
        check_are_classes(labels, seen.rows, f"column {seen.name!r} of {self.formats[0].path}")
        return labels

    def _features(self, name: str, found: dict[str, Column]) -> list[str]:
        known = word_of(name, self.names) is None and name in found
        return found[name].features if known else [name]

    def check(self, file: Format) -> None:
        """:raise ValueError: if a file lacks a column, or has others than the first."""
        names = [name for name in file.names if name not in self.drop]
        self.columns.check_names(names, f"file {file.path}", self._exactly)

    def _batches(self, file: Format, names: Sequence[str], size: int) -> Iterator[Any]:
        if lost := [name for name in names if name not in file.names]:
            raise ValueError(f"file {file.path} lacks {quoted(lost)}; it has {quoted(file.names)}")
        return (batch for batch in file.batches(names, size) if batch.num_rows)

    def batches(self, file: Format, names: Sequence[str], size: int) -> Iterator[Any]:
        """:return: record batches of some columns of a file, of at most so many rows."""
        for batch in self._batches(file, names, size):
            yield from (batch[start : start + size] for start in range(0, batch.num_rows, size))

    def sparse(self) -> Any:
        """:return: X [N, D] of a sparse file, all columns from x0 on; None: it is none."""
        return getattr(self.formats[0], "X", None)

    @property
    def left_out(self) -> tuple[str, ...]:
        """:return: columns left out without being asked: the index that pandas or R wrote."""
        own = {*own_columns(self.names), *self.columns.read}
        return tuple(name for name in self.names if name not in own)

    def notes(self) -> list[str]:
        """:return: lines for users on what became of the columns, one for each kind."""
        kinds: dict[str, list[str]] = {}
        for column in self.columns.kinds:
            about = column.about if column.words is None else f"words of {column.name}"
            shown = [column.name] if column.words is None else [*map(repr, column.words)]
            kinds.setdefault(about, []).extend(shown)
        lines = [f"{about}: {listed(names, 12)}" for about, names in kinds.items()]
        if self.zeros:
            lines.append(
                f"numbers that begin with 0: {listed(self.zeros)}; if they are codes, give "
                f"words={self.zeros!r}"
            )
        why = {ROW_NAMES: "names of rows, for which the header has no name"}
        lines += [f"left out: {why.get(name, f'{name!r}, an index')}" for name in self.left_out]
        if self.columns.classes is not None:
            classes = [*map(repr, self.columns.classes)]
            lines.append(f"labels, {self.columns.target}: {listed(classes, 12)}")
        return lines


def find_target(path: str, target: str | None, **options: Any) -> str:
    """
    :param options: of `Table`.
    :return: the column of labels: `target`, or that of `TARGETS` which is there.
    :raise ValueError: if there is none, or several, and for a file that cannot be read.
    """
    how = {name: options.get(name) for name in ("names", "separator", "encoding")}
    return target_among(path, open_format(path, **how).names, target)
