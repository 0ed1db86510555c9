"""Tables in files, read by pyarrow some rows at a time: what all formats have in common."""

from __future__ import annotations

import hashlib
import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, ClassVar

from ..data.pieces import Origin, Piece
from ..data.readers import Reader
from ..optional import require
from ..tables import MOST_WORDS, find_files, is_number, own_columns, quoted
from .columns import Columns, as_text
from .labels import MOST_CLASSES, check_are_classes

#: Number of rows of a column that are read together.
_COLUMN_ROWS = 2**17


class Files(Reader):
    """
    Rows of files of equal columns, one file after the other.

    :ivar paths: of the files, in the order in which they are read.
    :ivar features: names of the columns of X.
    :ivar classes: the label of each class 0..C-1, if labels become numbers; else None.
    :ivar left_out: columns left out without being asked: the index that pandas wrote.
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
        classes: Sequence[Any] | str | None = None,
        words: bool = False,
    ) -> None:
        """
        :param path: of a file, of a directory, whose files are read in the order of their names, or
            of several files, read in the order given.
        :param target: name of the column of labels, numbers as the likelihood wants them; None: for
            predictions.
        :param weight: name of the column of weights; None: ones.
        :param features: names of the columns of X, in this order; None: all others except those
            without a name (the index, as pandas writes it).
        :param classes: labels of any type, in the order of 0..C-1, which become numbers; "auto": a
            pass finds them, and sorts them; then `words` is True.
        :param words: whether a pass finds the words of columns of text: of at most 50 each becomes
            a feature "column=word" of zeros and ones, as which `features` may name it.
        :raise ImportError: without pyarrow.
        :raise FileNotFoundError: if there is no such file.
        :raise ValueError: for columns that are missing or not numbers, and for a file without rows.
        """
        require("pyarrow", extra="files")
        self.paths, self._exactly = find_files(path, self.endings), features is None
        schema, self._odd = self._schema(self.paths[0]), dict[str, str]()  # words of no feature
        encode = isinstance(classes, str) and classes == "auto" and target is not None
        if encode:
            classes = self._distinct(str(target))
        if features is None and (encode or words):
            others = [name for name in own_columns(schema.names) if name not in (target, weight)]
            features = [one for name in others for one in self._with_words(name, schema)]
        self.columns = Columns(schema.names, target, weight, features, classes)
        self.features = self.columns.features
        self.classes = self.columns.classes
        read = {*self.features, *self.columns.read, *own_columns(schema.names)}
        self.left_out = tuple(name for name in schema.names if name not in read)
        self._check(self.paths[0], schema)

    @property
    def marks(self) -> dict[str, str]:
        """See `Reader`; independent of the files' place, if copies keep modification times."""
        known = [os.stat(path) for path in self.paths]
        latest = datetime.fromtimestamp(max(file.st_mtime for file in known))
        digest = hashlib.sha256(repr([(f.st_size, f.st_mtime_ns) for f in known]).encode())
        columns = self.columns
        return {
            "files": f"{len(known)} of {sum(file.st_size for file in known)} bytes, last changed "
            f"{latest:%Y-%m-%d %H:%M:%S} ({digest.hexdigest()[:12]})",
            "columns of the files": str((*self.features, columns.target, columns.weight)),
            "classes": repr(self.classes),
        }

    @abstractmethod
    def _format(self, path: str) -> Any:
        """:return: pyarrow's, of a file."""

    def _file(self, path: str) -> Any:
        """:return: the file as a fragment of a data set of pyarrow."""
        local = require("pyarrow.fs", extra="files").LocalFileSystem()
        return self._format(path).make_fragment(path, local)

    def _schema(self, path: str) -> Any:
        with _named(path):
            return self._file(path).physical_schema

    @abstractmethod
    def _batches(self, path: str, kinds: dict[str, Any], size: int) -> Iterator[Any]:
        """:return: record batches of some columns, of these types if the file has none."""

    def _tables(self, path: str, schema: Any, kinds: dict[str, Any], size: int) -> Iterator[Any]:
        """:return: `_batches` without empty ones."""
        with _named(path, schema.names):
            yield from (batch for batch in self._batches(path, kinds, size) if batch.num_rows)

    def _column(self, path: str, name: str, kind: Any = None) -> Iterator[Any]:
        """:return: a column of a file, some rows at a time."""
        if name not in (schema := self._schema(path)).names:
            raise ValueError(f"file {path} lacks {name!r}; it has {quoted(schema.names)}")
        kinds = {name: kind or schema.field(name).type}
        for table in self._tables(path, schema, kinds, _COLUMN_ROWS):
            yield table.column(0)

    def _kinds(self, schema: Any) -> dict[str, Any]:
        """:return: types of all columns: later rows might suggest other types than the first."""
        arrow, columns = require("pyarrow", extra="files"), self.columns
        truth = {name for name in columns.read if schema.field(name).type == arrow.bool_()}
        kinds = dict.fromkeys(columns.read, arrow.float64()) | dict.fromkeys(truth, arrow.bool_())
        kinds |= dict.fromkeys(columns.texts, arrow.string())
        if columns.numbers is not None:
            kinds[columns.target] = columns.numbers.arrow_type
        return kinds

    def texts(self, name: str) -> Iterator[str | None]:
        """:return: the values of a column of any type."""
        for path in self.paths:
            for column in self._column(path, name, require("pyarrow").string()):
                yield from as_text(column).to_pylist()

    def _distinct(self, name: str) -> list[Any]:
        """:return: distinct values of a column, sorted."""
        found, number = set[Any](), 0
        for path in self.paths:
            first = number
            for column in self._column(path, name):
                _check_no_gap(column, f"file {path}", number - first, name)
                number += len(column)
                found |= set(column.unique().to_pylist())
                if len(found) > MOST_CLASSES:
                    raise ValueError(
                        f"column {name!r} of {path} holds more than {MOST_CLASSES} different "
                        "values: classes are expected; is target the right column?"
                    )
        check_are_classes(found, number, f"column {name!r} of {self.paths[0]}")
        return sorted(found)

    def _with_words(self, name: str, schema: Any) -> list[str]:
        """:return: a feature for each word of a text column with few; else the column."""
        arrow, found = require("pyarrow", extra="files"), set[Any]()
        kind = schema.field(name).type
        kind = kind.value_type if arrow.types.is_dictionary(kind) else kind
        if kind not in (arrow.string(), arrow.large_string()):
            return [name]
        for column in (one for path in self.paths for one in self._column(path, name)):
            found |= set(as_text(column).unique().to_pylist()) - {None}
            if len(found) > MOST_WORDS or any(map(is_number, found)):
                words = [word for word in found if not is_number(word)]
                self._odd[name] = max(words or found)
                return [name]
        return [f"{name}={word}" for word in sorted(found)]

    def _check(self, path: str, schema: Any) -> None:
        """:raise ValueError: for columns that are missing, or not numbers."""
        types = require("pyarrow", extra="files").types
        numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        kinds = zip(schema.names, schema.types)
        wrong = {n: k for n, k in kinds if not any(is_(k) for is_ in (*numbers, types.is_null))}
        wrong |= {name: f"{wrong[name]} such as {word!r}" for name, word in self._odd.items()}
        self.columns.check_names(schema.names, f"file {path}", self._exactly)
        self.columns.check_types(wrong, f"file {path}")

    def pieces(self, size: int) -> Iterator[Piece]:
        """See `Reader`."""
        for path in self.paths:
            row, schema = 0, self._schema(path)
            self.columns.check_names(schema.names, f"file {path}", self._exactly)
            for table in self._tables(path, schema, self._kinds(schema), size):
                yield self.columns.piece(table, Origin(row, path))
                row += table.num_rows
            if row == 0:
                raise ValueError(f"file {path} has no rows; leave it out")


def _check_no_gap(column: Any, where: str, start: int, name: str) -> None:
    """:param start: number of the first row of this part of a column."""
    compute = require("pyarrow.compute", extra="files")
    row = compute.index(compute.is_null(column, nan_is_null=True), True).as_py()
    if row >= 0:
        at = f"(row {start + row}, column {name!r})"
        raise ValueError(f"{where}: the label is empty {at}; drop such rows first")


@contextmanager
def _named(path: str, names: Sequence[str] = ()) -> Iterator[None]:
    """
    :param names: of the file's columns, which pyarrow counts.
    :raise ValueError: instead of any error in a context.
    """
    arrow = require("pyarrow", extra="files")
    try:
        yield
    except (arrow.ArrowInvalid, arrow.ArrowKeyError, OSError) as error:
        why = re.sub(r"^Could not open .*: Invalid: ", "", str(error))
        why = re.sub(r"CSV column #(\d+)", lambda m: f"column {names[int(m[1])]!r}", why)
        raise ValueError(f"file {path} cannot be read: {why}") from error
