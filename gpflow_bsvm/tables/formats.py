"""The formats of tables: pyarrow reads CSV and Parquet, SciPy the headers of ARFF."""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..optional import require
from .dialect import Dialect, find_dialect, open_text, read_head
from .paths import ARFF, OTHERS, PARQUET, SVMLIGHT


class Text:
    """
    A table of text whose columns come as they are written.

    :ivar names: of all columns, in their order; types: of pyarrow, by name.
    :ivar words: columns that the file says to be words.
    :ivar num_rows: None: nobody knows.
    :ivar may_have_commas: whether a point may well be a sign between thousands.
    """

    num_rows: int | None = None
    may_have_commas = False

    def __init__(self, path: str, **how: Any) -> None:
        """
        :param how: see `find_dialect`.
        :raise ValueError: if it cannot be read.
        """
        self.path, self.words = path, set[str]()
        with named(path):
            self.dialect = self._find(path, how)
        self.may_have_commas = self.dialect.separator in ";\t"
        self.names = self.dialect.names
        self.types = dict.fromkeys(self.names, require("pyarrow", extra="files").string())

    def _find(self, path: str, how: Any) -> Dialect:
        return find_dialect(path, **how)

    def batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        """:return: record batches of some columns, of about so many rows."""
        with named(self.path, self.names):
            yield from self._by_lines(columns, size) if self.dialect.spaced else self._fast(columns)

    def _fast(self, columns: Sequence[str]) -> Iterator[Any]:
        arrow, dialect = require("pyarrow.csv", extra="files"), self.dialect
        with arrow.open_csv(
            require("pyarrow").input_stream(self.path),
            arrow.ReadOptions(
                column_names=dialect.names,
                skip_rows=dialect.header,
                encoding=dialect.encoding.replace("utf-8-sig", "utf-8"),
                block_size=max(2**20, 4 * dialect.longest),
            ),
            arrow.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
            arrow.ConvertOptions(column_types=self.types, include_columns=list(columns)),
        ) as batches:
            yield from batches

    def _by_lines(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        """Read what pyarrow does not: runs of spaces, spaces after commas, comments of ARFF."""
        batch, where = require("pyarrow").RecordBatch, [self.names.index(name) for name in columns]
        rows = self._rows()
        while part := list(itertools.islice(rows, size)):
            cells = [[row[place] for row in part] for place in where]
            yield batch.from_pydict(
                dict(zip(columns, cells)),
                require("pyarrow").schema([(name, self.types[name]) for name in columns]),
            )

    def _rows(self) -> Iterator[list[str]]:
        dialect, width = self.dialect, len(self.names)
        with open_text(self.path, dialect.encoding) as lines:
            reader = csv.reader(
                self._lines(lines),
                delimiter=dialect.separator,
                quotechar=dialect.quote,
                skipinitialspace=True,
            )
            for row in itertools.islice(filter(None, reader), int(dialect.header > 0), None):
                row = row[:width] if row[width:] == [""] else row  # a space at the end
                if len(row) != width:
                    at = f"line {reader.line_num}"
                    raise ValueError(f"{at}: Expected {width} columns, got {len(row)}")
                yield row

    def _lines(self, lines: Any) -> Iterator[str]:
        return iter(lines)


class Arff(Text):
    """A file of Weka or OpenML. Attributes with a list of values are words."""

    def _find(self, path: str, how: Any) -> Dialect:
        text, encoding = read_head(path, how.get("encoding"))
        begin = re.search(r"^\s*@data.*$", text, re.MULTILINE | re.IGNORECASE)
        if begin is None:
            raise ValueError("its first lines have no @data")
        try:
            header = io.StringIO(text[: begin.end()].replace('"', "'") + "\n")
            _, about = require("scipy.io.arff").loadarff(header)
        except NotImplementedError:
            raise ValueError("it has attributes of text: save it as CSV") from None
        if text[begin.end() :].lstrip().startswith("{"):
            raise ValueError("it is sparse: save it as svmlight")
        self.words = {name for name, kind in zip(about.names(), about.types()) if kind == "nominal"}
        quote = "'" if "'" in text[begin.end() :] else '"'
        return Dialect(encoding, ",", about.names(), spaced=True, header=0, quote=quote)

    def _lines(self, lines: Any) -> Iterator[str]:
        header = itertools.dropwhile(
            lambda one: not one.lstrip().lower().startswith("@data"), lines
        )
        return (one for one in itertools.islice(header, 1, None) if not one.startswith("%"))


class Parquet:
    """
    A Parquet file, whose columns have types.

    :ivar num_rows: N.
    """

    may_have_commas = False

    def __init__(self, path: str) -> None:
        """:raise ValueError: if it cannot be read."""
        self.path, self.words = path, set[str]()
        with named(path), self._open() as file:
            self.types = dict(zip(file.schema_arrow.names, file.schema_arrow.types))
            self.names, self.num_rows = list(file.schema_arrow.names), file.metadata.num_rows

    def _open(self) -> Any:
        parquet = require("pyarrow.parquet", extra="files")
        return parquet.ParquetFile(self.path, buffer_size=2**20, pre_buffer=False)

    def batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        """See `Text`."""
        with named(self.path), self._open() as file:
            yield from file.iter_batches(batch_size=size, columns=list(columns))


class SVMLight:
    """
    A file of LIBSVM: "label index:value ...". The label is column "y", values are x0, x1, ...

    :ivar X: [N, D], sparse; written: [N], the labels; num_rows: N.
    """

    may_have_commas = False

    def __init__(self, path: str, features: Sequence[str] = ()) -> None:
        """
        :param features: those that it has besides its own, all 0.
        :raise ValueError: if it cannot be read.
        """
        datasets, arrow = require("sklearn.datasets"), require("pyarrow", extra="files")
        self.path, self.words = path, set[str]()
        with named(path), open_text(path, "utf-8") as lines:
            rows = (line.split("#")[0].split(None, 1) for line in lines)
            self.written = [row[0] for row in rows if row]
            content = io.BytesIO(arrow.input_stream(path).read())
            self.X, _ = datasets.load_svmlight_file(content, zero_based=True)
        self.num_rows, begin = len(self.written), int(self.X[:, [0]].nnz == 0)
        own = (f"x{number}" for number in range(begin, self.X.shape[1]))
        more = (name for name in features if re.fullmatch(r"x\d+", str(name)))
        self.names = [*dict.fromkeys(("y", *own, *more))]
        self.types = dict.fromkeys(self.names, arrow.float64()) | {"y": arrow.string()}

    def batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        """See `Text`."""
        batch, places = require("pyarrow").RecordBatch, [int(name[1:] or -1) for name in columns]
        for start in range(0, self.num_rows, size):
            X, Y = self.X[start : start + size].toarray(), self.written[start : start + size]
            X = np.pad(X, ((0, 0), (0, max(0, *places, 0) + 1)))  # features that no row has
            yield batch.from_arrays(
                [require("pyarrow").array(Y if n < 0 else X[:, n]) for n in places], [*columns]
            )


Format = Text | Parquet | SVMLight


def is_svmlight(path: str, encoding: str | None) -> bool:
    """:return: True for a file that ends in one of `SVMLIGHT`, or whose lines look like that."""
    if path.lower().endswith(SVMLIGHT):
        return True
    with named(path):
        lines = [
            line
            for line in read_head(path, encoding)[0].split("\n")[:20]
            if line.split("#")[0].strip()
        ]
    return all(re.match(r"^\S+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?$", line) for line in lines)


def _begins_with(path: str, mark: bytes) -> bool:
    with named(path), open(path, "rb") as file:
        return file.read(len(mark)) == mark


def open_format(path: str, features: Sequence[str] | None = None, **how: Any) -> Format:
    """
    :param features: those that are wanted.
    :param how: how a text is written, see `find_dialect`; None: as it shows.
    :return: the table in a file.
    :raise ValueError: for a file that cannot be read, and for what Parquet and ARFF say themselves.
    """
    kind = path.lower()
    if kind.endswith(OTHERS):
        raise ValueError(f"{path} is neither CSV nor Parquet: save it as one of these")
    given = [name for name, value in how.items() if value is not None and name != "encoding"]
    if given and kind.endswith((*PARQUET, *ARFF)):
        raise ValueError(f"{given[0]}=[...] is for CSV files, and {path} says so itself")
    if kind.endswith(PARQUET) or _begins_with(path, b"PAR1"):
        return Parquet(path)
    if kind.endswith(ARFF):
        return Arff(path, **how)
    if not given and is_svmlight(path, how.get("encoding")):
        return SVMLight(path, features or ())
    return Text(path, **how)


@contextmanager
def named(path: str, names: Sequence[str] = ()) -> Iterator[None]:
    """
    :param names: of the file's columns, which pyarrow counts.
    :raise ValueError: instead of any error in a context.
    """
    arrow = require("pyarrow", extra="files")
    try:
        yield
    except (arrow.ArrowInvalid, arrow.ArrowKeyError, ValueError, OSError, csv.Error) as error:
        number = getattr(error, "errno", None)
        text = os.strerror(number) if number else str(error) or type(error).__name__
        why = text.splitlines()[0]
        if isinstance(error, ValueError) and path in why:
            raise
        why = re.sub(r"CSV column #(\d+)", lambda m: f"column {names[int(m[1])]!r}", why)
        raise ValueError(f"cannot read {path}: {why}") from error
