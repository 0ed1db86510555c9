"""A table in one or several files, its columns, and how each column is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .cells import arrow, without
from .columns import Column, Columns, chosen_words
from .formats import Format
from .labels import spelled_alike
from .oddities import FEW, ODDITIES
from .paths import listed, own_columns, short, shortened, with_nearest
from .reading import Reading
from .spelling import PLAIN, in_doubt
from .survey import GROUPED, Survey
from .text import Text, open_formats

#: Default names of the label column.
TARGETS = ("y", "target", "class", "label")
#: Number of rows to read at a time when inspecting columns.
_ROWS = 2**15
#: With fewer rows, numbers may be sorted by chance.
_FEWEST_COUNTED = 10
_UNNAMED = "an index, names of rows, or a column without a name"
#: Largest number of problems in one error.
_MOST_REASONS = 5


class Table:
    """
    Files with the same columns, and how to read them.

    :ivar columns: columns of X, labels and weights.
    :ivar classes_in_order: whether the user or the labels' type defines the order of the classes.
    :ivar rows: number of inspected rows.
    """

    def __init__(self, paths: Sequence[str], reading: Reading, labelled: bool = False) -> None:
        """
        :param labelled: whether labels are needed; by default, a column of `TARGETS` holds them.
        :raise ValueError: for columns that are missing or cannot be read.
        """
        self.files = open_formats(paths, reading)
        self.names = self.files[0].columns
        self.rows = 0
        self._reading = reading = self._with_target(reading) if labelled else reading
        self._check_options()
        beside = (reading.target, reading.weight, *reading.drop)
        others = [name for name in own_columns(self.names) if name not in beside]
        wanted = others if reading.features is None else list(reading.features)
        told = reading.told_words if reading.is_prediction else ()
        chosen = chosen_words(wanted, self.names, reading.empty, told)
        asked = Columns(chosen, reading.target, reading.weight, wanted, None)
        self._check_names(asked, self.files[0])
        self._look([*wanted, reading.target, reading.weight])
        found, classes = self._found()
        self._kinds = {name: found[name] for name in wanted if name in found}
        found |= chosen
        X = [one for name in wanted for one in found.get(name, Column(name)).features]
        labels = self._seen.get(reading.target)  # None without labels
        self.classes_in_order = bool(labels and labels.order) if reading.is_auto else True
        self.columns = Columns(found, reading.target, reading.weight, X, classes)
        for file in self.files:
            self._check_names(self.columns, file)

    def _check_names(self, columns: Columns, file: Format) -> None:
        own = [name for name in file.columns if name not in self._reading.drop]
        columns.check_names(own, f"file {file.path}", self._reading.features is None)

    def _with_target(self, reading: Reading) -> Reading:
        path = self.files[0].path
        if reading.target is not None:
            return reading
        found = [name for name in self.names if name.lower() in TARGETS]
        if len(found) == 1:
            return replace(reading, target=found[0])
        hint = "; if these are the values of the first row, give names=[...]"
        raise ValueError(
            f"which column of {path} holds the labels? Name it with target (--target COL); its "
            f"columns, {listed(self.names, 40)}, include {'more than one' if found else 'none'} of "
            f"{', '.join(TARGETS)}{hint * self._begins_with_values(reading)}"
        )

    def _begins_with_values(self, reading: Reading) -> bool:
        """:return: True if a text file may have no header: the name of a column is a fraction."""
        fractions = [name for name in self.names if re.fullmatch(r"[+-]?\d+[.,]\d+", name)]
        return bool(fractions) and reading.names is None and isinstance(self.files[0], Text)

    def _check_options(self) -> None:
        """:raise ValueError: for options that name missing columns or contradict each other."""
        reading = self._reading
        kept = {*(reading.features or ()), reading.target, reading.weight}
        if both := sorted({*reading.drop} & kept):
            raise ValueError(
                f"drop={both!r}: columns that are read as features, target or weight cannot be "
                "left out"
            )
        given = {"dates": reading.dates}
        if not reading.is_prediction:  # a prediction's table may lack them
            given |= {"words": reading.told_words, "drop": reading.drop}
        for option, names in given.items():
            if lost := sorted({*names} - {*self.names}):
                lacks = f"{self.files[0].path} lacks: {with_nearest(lost, self.names)}"
                raise ValueError(f"{option}=[...] names columns that {lacks}")

    def _look(self, names: Sequence[Any]) -> None:
        """Inspect columns, in all rows if necessary; report errors in the first rows at once."""
        reading = self._reading
        first = self.files[0]
        starts = list[Any]()
        there = [name for name in names if name in first.types]
        first.dates = {name: one for file in self.files for name, one in file.dates.items()}
        self._seen = {name: Survey(name, first, reading, starts) for name in there}
        for file in self.files:
            starts.append((file.path, self.rows))
            for batch in file.batches([*self._seen], _ROWS):
                for name, one in self._seen.items():
                    one.add(batch.column(name))
                if self.rows == 0:
                    self._found(complete=False)
                self.rows += len(batch)
                if reading.words is False and not reading.is_auto:
                    return

    def _check_header(self) -> None:
        """:raise ValueError: if a row repeats the header, or the header seems to be a row."""
        if len(self._seen) < 2:
            return
        repeated = {one.seen.get(name) for name, one in self._seen.items()}
        if len(repeated) == 1 and None not in repeated:  # joined files
            place = next(one.place(name) for name, one in self._seen.items())
            raise ValueError(f"file {self.where}: {place} repeats the header: delete such rows")
        values = [name for name, one in self._seen.items() if one.is_named_by_a_value]
        are_most = len(values) > len(self._seen) / 2
        if are_most and self._reading.target in values and self._reading.names is None:
            raise ValueError(
                f"the first line of {self.files[0].path} has values of its columns instead of "
                f"their names ({listed(values, 4)}): if it is a row, give names=[...] with the "
                f"names of all {len(self.names)} columns; if not, put a letter before each"
            )

    def _found(self, complete: bool = True) -> tuple[dict[str, Column], Any]:
        """:return: how to read each column, and, if `complete`, the classes."""
        self._check_header()
        found = dict[Any, Any]()
        reasons = list[str]()
        for name, read in self._questions(complete).items():
            try:
                found[name] = read()
            except ValueError as reason:
                reasons.append(str(reason))
        if reasons:
            shown = "; ".join(reasons[:_MOST_REASONS])
            more = f"; {len(reasons) - _MOST_REASONS} more" * (len(reasons) > _MOST_REASONS)
            raise ValueError(f"file {self.where}: {shown}{more}")
        reading = self._reading
        classes = found.pop(reading.target, None) if reading.is_auto else reading.classes
        return found, classes

    def _questions(self, labels: bool) -> dict[Any, Callable[[], Any]]:
        """:return: functions that return how to read each column or, for `labels`, the classes."""
        reading = self._reading
        label = None if reading.classes is None else reading.target
        seen = [one for one in self._seen.values() if one.name != label]
        signs = [{way.decimal for way in one.fitting} for one in seen]
        point = {"."} in signs
        comma = {","} in signs or (any(file.may_have_commas for file in self.files) and not point)
        asked: dict[Any, Any] = {one.name: partial(one.column, comma, point) for one in seen}
        if labels and reading.is_auto and label in self._seen:
            asked[label] = self._seen[label].classes
        return asked

    @property
    def where(self) -> str:
        """:return: the files' name in errors."""
        return listed([file.path for file in self.files], 1)

    @property
    def holes(self) -> dict[str, str]:
        """:return: the place of the first missing value, by column of X."""
        found = dict[str, str]()
        for name, column in self._kinds.items():
            seen = self._seen[name]
            if place := seen.gap(seen.missing_values(column.words is not None)):
                found[name] = place
        return found

    @property
    def left_out(self) -> tuple[str, ...]:
        """:return: columns left out automatically, such as an index written by pandas or R."""
        names = dict.fromkeys(name for file in self.files for name in file.columns)
        own = {*own_columns([*names]), *self.columns.read}
        return tuple(name for name in names if name not in own)

    def notes(self, X: Any = None) -> list[str]:
        """
        :param X: [n, D], the first rows; None: without a note on columns that number the rows.
        :return: notes for the user on how columns are read.
        """
        kinds = dict[str, list[str]]()
        for column in self.columns.kinds:
            shown = [column.name] if column.words is None else [*map(short, column.words)]
            kinds.setdefault(column.about, []).extend(shown)
        lines = [f"{about}: {listed(names, 12)}" for about, names in kinds.items()]
        lines += [*self._of_oddities(), *self._of_left_out()]
        if self._begins_with_values(self._reading):
            first = listed(self.names, 12)
            lines.append(f"the first row names the columns, {first}; if not, give names=[...]")
        lines += [*self._of_labels(), *self._of_values()]
        if X is not None and len(X) >= _FEWEST_COUNTED and (keys := self._keys(X)):
            out = f"if this is a row number or an identifier, leave it out with drop={keys!r}"
            lines.append(f"different in each row: {listed(keys)}; {out}")
        return lines

    @property
    def in_doubt(self) -> list[str]:
        """:return: columns in which 1.234 may mean 1234, unlike in training."""
        marks = self._reading.marks  # None: a model of an earlier version
        points = [name for name, one in self._kinds.items() if one.spelling.decimal == "."]
        ways = {name: self._seen[name].fitting for name in points}
        found = [name for name, fitting in ways.items() if PLAIN in fitting and in_doubt(fitting)]
        return [] if marks is None else [name for name in found if marks.get(name) != GROUPED]

    def _of_left_out(self) -> list[str]:
        lost = {*self.left_out}
        names = [numbered for file in self.files for numbered in enumerate(file.columns, 1)]
        unnamed = [f"column {place}, {name!r}: {_UNNAMED}" for place, name in names if name in lost]
        others = [one for file in self.files for one in file.left_out]
        return [f"left out: {one}" for one in dict.fromkeys((*unnamed, *others))]

    def _of_labels(self) -> Iterator[str]:
        classes = self.columns.classes or ()
        if self.columns.target is not None:
            shown = shortened(classes, 12) or self.columns.about_labels
            yield f"labels, {self.columns.target}: {shown}"
        if alike := spelled_alike(classes):
            which = f"labels that differ only in how they are written: {shortened(alike, 12)}"
            yield f"{which}; if they mean one class, write them alike"

    def _of_values(self) -> Iterator[str]:
        seen = [str(value) for one in self._seen.values() for value in one.seen]
        texts = arrow.array(seen, "string")
        given = [text for text in self._reading.na_values or () if text]
        if lost := [text for text in given if not without(texts, [text]).null_count]:
            yield f"no column has these values: na_values={lost!r}"
        different = {name: self._seen[name].seen for name in self._kinds if self.rows > 1}
        constant = [name for name, one in different.items() if len(one) == 1 and None not in one]
        if constant:
            out = f"leave it out with drop={constant!r}"
            yield f"constant, without information: {listed(constant)}; {out}"

    def _of_oddities(self) -> list[str]:
        numbers = [name for name, one in self._kinds.items() if one.words is None and not one.date]
        target = self.columns.target
        if self.columns.classes is None and target in {*self._seen} - {*self._reading.dates}:
            numbers.append(str(target))
        found = {name: self._seen[name].oddities for name in numbers}
        lines = []
        for about, (_, _, how) in ODDITIES.items():
            asked = numbers if about != FEW else [name for name in numbers if name != target]
            if such := [name for name in asked if about in found[name]]:
                lines.append(f"numbers that {about}: {listed(such)}; {how.format(repr(such))}")
        return lines

    def _keys(self, X: Any) -> list[str]:
        """:return: columns of distinct words, and of whole numbers that only rise or only fall."""
        words = [name for name, one in self._kinds.items() if one.words is not None]
        dates = {name for name, one in self._kinds.items() if one.date}
        ordered = (X[1:] > X[:-1]).all(axis=0) | (X[1:] < X[:-1]).all(axis=0)
        whole = [n for n in np.flatnonzero(ordered) if (np.floor(X[:, n]) == X[:, n]).all()]
        found = {self.columns.features[place] for place in whole}
        keys = {name for name in words if len(self._seen[name].seen) == self.rows} | found - dates
        return [column.name for column in self.columns.kinds if column.name in keys]
