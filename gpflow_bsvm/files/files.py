"""Tables in files, read by pyarrow some rows at a time: what Parquet and CSV have in common."""

from __future__ import annotations

import hashlib
import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

import gpflow
import numpy as np
from gpflow.base import AnyNDArray

from ..data.pieces import Origin, Piece
from ..data.readers import Reader
from ..optional import require
from ..tables import MOST_WORDS, find, is_number, word_of
from .labels import MOST_CLASSES, ClassNumbers, check_are_classes

#: What pandas calls its index: it tells of the order of rows, and is no feature.
_INDEX = re.compile(r"|Unnamed: [\d.]+|__index_level_\d+__")


class Files(Reader):
    """
    Rows of files of equal columns, one file after the other.

    :ivar paths: of the files, in the order in which they are read.
    :ivar features: names of the columns of X.
    :ivar left_out: columns that nobody asked for or against: the index that pandas wrote.
    """

    finite = True
    endings: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        target: str | None = None,
        *,
        weight: str | None = None,
        features: Sequence[str] | None = None,
        classes: Sequence[Any] | Mapping[Any, int] | str | None = None,
        words: bool = False,
    ) -> None:
        """
        :param path: of a file, of a directory, whose files are read in the order of their names, or
            of several files, read in the order given.
        :param target: name of the column of labels, numbers as the likelihood wants them; None: for
            predictions.
        :param weight: name of the column of weights; None: ones.
        :param features: names of the columns of X, in this order; None: all others, but for those
            without a name, as which pandas writes its index.
        :param classes: labels of any type become numbers: a sequence, in the order of 0..C-1, or a
            mapping from labels to 0..C-1; "auto": a pass finds them, and sorts them; then
            `words` is True.
        :param words: whether a pass finds the words of columns of text: of at most 50 each becomes
            a feature "column=word" of zeros and ones, as which `features` may name it.
        :raise ImportError: without pyarrow.
        :raise FileNotFoundError: if there is no such file.
        :raise ValueError: for columns that are missing or no numbers, and for a file without rows.
        """
        require("pyarrow", extra="files")
        if classes is not None and target is None:
            raise ValueError("classes are of the labels: give target=..., the name of their column")
        self._target, self._weight = target, weight
        self.paths, self._given = find(path, self.endings), features is not None
        encode = isinstance(classes, str) and classes == "auto"
        classes = self._distinct(str(target)) if encode else classes
        self._numbers = None if classes is None else ClassNumbers(classes)
        if isinstance(features, str):
            raise ValueError(f"features must be a list of names, got the string {features!r}")
        schema = self._schema(self.paths[0])
        others = [name for name in own_columns(schema.names) if name not in (target, weight)]
        if features is None and (encode or words):
            others = [one for name in others for one in self._with_words(name, schema)]
        self.features = tuple(others if features is None else features)
        found = {name: word_of(str(name), schema.names) for name in self.features}
        self._words = {name: word for name, word in found.items() if word is not None}
        named = {*self.features, target, weight, *own_columns(schema.names)}
        self.left_out = tuple(name for name in schema.names if name not in named)
        if not self.features:
            raise ValueError(f"{self.paths[0]} has no columns for X beside target and weight")
        self._check_names(self.paths[0], schema)
        self._check_types(self.paths[0], schema)

    def _distinct(self, name: str) -> list[Any]:
        """:return: what there is in a column, sorted."""
        compute = require("pyarrow.compute", extra="files")
        found: set[Any] = set()
        number = 0
        for path in self.paths:
            row = 0
            for table in self._column(path, name):
                column, row = table.column(0), row + table.num_rows
                missing = compute.is_null(column, nan_is_null=True)
                if compute.any(missing).as_py():
                    where = row - table.num_rows + compute.index(missing, True).as_py()
                    raise ValueError(
                        f"file {path}: the label is empty (row {where}, column {name!r}); column "
                        f"{name!r} holds empty labels: drop such rows first"
                    )
                found |= set(column.unique().to_pylist())
                if len(found) > MOST_CLASSES:
                    raise ValueError(
                        f"column {name!r} of {path} holds more than {MOST_CLASSES} different "
                        "values: classes are expected; is target the right column?"
                    )
            number += row
        check_are_classes(found, number, f"column {name!r} of {self.paths[0]}")
        return sorted(found)

    @property
    def classes(self) -> list[Any] | None:
        """:return: the label of each class 0..C-1, if labels become numbers."""
        return None if self._numbers is None else self._numbers.names

    @property
    def marks(self) -> dict[str, str]:
        """See `Reader`; wherever the files lie, if a copy keeps the times of their last change."""
        known = [os.stat(path) for path in self.paths]
        latest = datetime.fromtimestamp(max(file.st_mtime for file in known))
        digest = hashlib.sha256(repr([(f.st_size, f.st_mtime_ns) for f in known]).encode())
        return {
            "files": f"{len(known)} of {sum(file.st_size for file in known)} bytes, last changed "
            f"{latest:%Y-%m-%d %H:%M:%S} ({digest.hexdigest()[:12]})",
            "columns of the files": str((*self.features, self._target, self._weight)),
            "classes": repr(self.classes),
        }

    @property
    def columns(self) -> list[str]:
        """:return: names of all columns that are read."""
        own = dict.fromkeys(self._words.get(name, (name,))[0] for name in self.features)
        return [*own, *(n for n in (self._target, self._weight) if n is not None)]

    @property
    def _texts(self) -> set[str]:
        """:return: names of columns of words."""
        return {column for column, _ in self._words.values()}

    def _with_words(self, name: str, schema: Any) -> list[str]:
        """:return: a feature for each word of a column of some words; else the column itself."""
        arrow = require("pyarrow", extra="files")
        kind, found = schema.field(name).type, set[Any]()
        if arrow.types.is_dictionary(kind):
            kind = kind.value_type
        if not (arrow.types.is_string(kind) or arrow.types.is_large_string(kind)):
            return [name]
        for path in self.paths:
            for table in self._column(path, name, arrow.string()):
                found |= set(table.column(0).unique().to_pylist()) - {None}
                if len(found) > MOST_WORDS or any(map(is_number, found)):
                    return [name]
        return [f"{name}={word}" for word in sorted(found)]

    @abstractmethod
    def _schema(self, path: str) -> Any:
        """:return: pyarrow's, of a file."""

    @abstractmethod
    def _tables(self, path: str, size: int) -> Iterator[Any]:
        """:return: pyarrow's record batches, of at least the columns that are read."""

    @abstractmethod
    def _column(self, path: str, name: str, kind: Any = None) -> Iterator[Any]:
        """:return: pyarrow's record batches of one column, of this type where text may be any."""

    def texts(self, name: str) -> Iterator[str | None]:
        """:return: what a column of any type has in each row."""
        arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
        for path in self.paths:
            for table in self._column(path, name, arrow.string()):
                yield from compute.cast(table.column(0), arrow.string()).to_pylist()

    def _check_names(self, path: str, schema: Any) -> None:
        """:raise ValueError: if a file lacks a column, or has others or one twice."""
        names = schema.names
        doubled = sorted({name for name in names if names.count(name) > 1})
        missing = [name for name in self.columns if name not in names]
        more = (
            [] if self._given else [n for n in own_columns(schema.names) if n not in self.columns]
        )
        for what, wrong in (("lacks", missing), ("has, beside the others,", more)):
            if wrong:
                raise ValueError(
                    f"file {path} {what} {listed(wrong)}; it has {listed(names)}, and "
                    f"{listed(self.columns)} are read: choose them by features, target and weight"
                )
        named = [n for n in (*self.features, self._target, self._weight) if n is not None]
        if len({*named}) != len(named) or self._texts & {self._target, self._weight}:
            raise ValueError(
                f"features {listed(self.features)}, target {self._target!r} and weight "
                f"{self._weight!r} must be different columns"
            )
        if doubled:
            raise ValueError(f"file {path} has several columns of the name {listed(doubled)}")

    def _check_types(self, path: str, schema: Any) -> None:
        """:raise ValueError: for a column that is no numbers."""
        types = require("pyarrow", extra="files").types
        tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        for name in self.columns:
            kind, is_target = schema.field(name).type, name == self._target
            if (is_target and self._numbers is not None) or name in self._texts:
                continue
            if not any(test(kind) for test in (*tests, types.is_null)):
                advice = (
                    'give classes="auto", or classes=[...], the labels in the order of 0..C-1'
                    if is_target
                    else "leave it out by features=[...], or encode it as numbers in the file"
                )
                raise ValueError(
                    f"column {name!r} of file {path} holds {kind}, and numbers are needed: {advice}"
                )

    def pieces(self, size: int) -> Iterator[Piece]:
        """See `Reader`."""
        for path in self.paths:
            row = 0
            for table in self._guarded(path, size):
                if table.num_rows:
                    yield self._piece(table, Origin(row, path, self.features))
                row += table.num_rows
            if row == 0:
                raise ValueError(f"file {path} has no rows; leave it out")

    def _guarded(self, path: str, size: int) -> Iterator[Any]:
        arrow = require("pyarrow", extra="files")
        try:
            self._check_names(path, self._schema(path))
            yield from self._tables(path, size)
        except (arrow.ArrowInvalid, arrow.ArrowKeyError, OSError) as error:
            raise ValueError(f"file {path} cannot be read: {self._why(path, error)}") from error

    def _why(self, path: str, error: Exception) -> str:
        return str(error)

    def _piece(self, table: Any, origin: Origin) -> Piece:
        X: AnyNDArray = np.empty((table.num_rows, len(self.features)), gpflow.default_float())
        for index, name in enumerate(self.features):
            X[:, index] = self._feature(table, name)
        for column in self._texts:
            self._check_words(table, column, origin)
        Y = None if self._target is None else self._labels(table.column(self._target), origin)
        weight = None if self._weight is None else _as_float(table.column(self._weight))
        return Piece(X, Y, None if weight is None else weight[:, None], origin)

    def _feature(self, table: Any, name: str) -> AnyNDArray:
        if name not in self._words:
            return _as_float(table.column(name))
        column, word = self._words[name]
        return _as_float(require("pyarrow.compute").equal(_as_text(table.column(column)), word))

    def _check_words(self, table: Any, column: str, origin: Origin) -> None:
        """:raise ValueError: for a word without a feature."""
        arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
        texts = _as_text(table.column(column))
        words = [word for own, word in self._words.values() if own == column]
        known = compute.is_in(texts, value_set=arrow.array([*words, None]))
        if not compute.all(known).as_py():
            row = compute.index(known, False).as_py()
            raise ValueError(
                f"{origin.place}{origin.row(row)}: {texts[row].as_py()!r} in column {column!r} is "
                f"none of the words {listed(words)}"
            )

    def _labels(self, column: Any, origin: Origin) -> AnyNDArray:
        if self._numbers is None:
            return _as_float(column)[:, None]
        return self._numbers(column, origin)[:, None]


def own_columns(names: Sequence[str]) -> list[str]:
    """:return: those of columns, but for the index that pandas writes beside them."""
    return [name for name in names if not _INDEX.fullmatch(str(name))]


def _as_text(column: Any) -> Any:
    arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
    return compute.cast(column, arrow.string())


def _as_float(column: Any) -> AnyNDArray:
    """:return: a column of numbers; what is missing is NaN."""
    arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
    numbers = compute.cast(column, arrow.float64(), safe=False)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), gpflow.default_float())


def listed(names: Sequence[str]) -> str:
    """:return: some names, for an error."""
    shown = ", ".join(map(repr, names[:8]))
    return shown + (", ..." if len(names) > 8 else "")
