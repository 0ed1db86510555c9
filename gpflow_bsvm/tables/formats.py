"""File formats: their base class, Parquet, svmlight and ARFF."""

from __future__ import annotations

import base64
import csv
import io
import itertools
import lzma
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..optional import Later
from .cells import arrow, as_text
from .paths import listed, with_nearest
from .reading import Reading

parquet = Later("pyarrow.parquet", "files")
datasets = Later("sklearn.datasets")

#: The first bytes of compressed files.
_PACKED = {"gzip": rb"\x1f\x8b", "bz2": rb"BZh[1-9]1AY&SY", "zstd": rb"\x28\xb5\x2f\xfd"}
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"\s*@attribute\s+({_QUOTED}|[^\s{{]+)\s*([{{\w]*)\s*({_QUOTED})?", re.I)
_FIELD = re.compile(rf"(?:^|,)\s*({_QUOTED}|[^,]*?)\s*(?=,|$)")
#: Matches a quoted string, or a comment after a space.
_COMMENT = re.compile(rf"((?<![^\s,])(?:{_QUOTED}))|\s%.*")
_DECLARES = "@attribute"
_TYPES = ("numeric", "real", "integer", "string", "date")
#: Date formats in ISO 8601 order, including Weka's default.
_ISO = re.compile(r"$|yyyy-MM-dd|HH:mm")
#: Weka's escapes for invisible characters.
_UNSEEN = {"n": "\n", "r": "\r", "t": "\t"}


class Format:
    """A table in a file."""

    path: str
    names: list[str]  #: names of the columns in the file, in order
    folders: Mapping[str, str | None] = {}  #: columns of one value (or None), from folders' names
    types: dict[str, Any]  #: pyarrow types of columns to inspect
    words: Collection[str] = ()  #: columns that the file declares as words
    dates: Mapping[str, str] = {}  #: declared date formats that are not ISO 8601, by column
    left_out: Sequence[str] = ()  #: descriptions of unread content
    num_rows: int | None = None  #: number of rows; None if unknown
    may_have_commas: bool = False  #: whether decimal commas are likely
    X: Any = None  #: [N, D], a sparse matrix of all columns from x0 on; None for a dense table

    @property
    def columns(self) -> list[str]:
        """:return: names of all columns."""
        return [*self.names, *self.folders]

    def batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        """
        :return: record batches of these columns, with 1 to `size` rows.
        :raise ValueError: for missing columns, and for rows that cannot be read.
        """
        if lost := sorted({*columns} - {*self.columns}):
            other = "" if len(lost) < len(columns) else "; leave out files of another table"
            raise ValueError(f"file {self.path} lacks {with_nearest(lost, self.columns)}{other}")
        own = [name for name in columns if name not in self.folders]
        with named(self.path):
            for batch in self._batches(own or self.names[:1], size):
                cells = dict(zip(own, batch.columns))
                for name, value in self.folders.items():
                    cells[name] = arrow.array([value] * len(batch), arrow.string())
                whole = arrow.RecordBatch.from_arrays([cells[n] for n in columns], [*columns])
                yield from (whole[start : start + size] for start in range(0, len(whole), size))

    def _batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        where = [self.names.index(name) for name in columns]
        rows = self._rows()
        while part := list(itertools.islice(rows, size)):
            made = [arrow.array([row[place] for row in part], arrow.string()) for place in where]
            yield arrow.RecordBatch.from_arrays(made, [*columns])

    def _rows(self) -> Iterator[Sequence[str | None]]:
        """:return: the strings of each row; None for a missing value."""
        raise NotImplementedError


class Parquet(Format):
    """A Parquet file, with typed columns."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self._open() as file:
            schema = file.schema_arrow
            self.num_rows = file.metadata.num_rows
            written = (file.metadata.metadata or {}).get(b"ARROW:schema")
        self.names = [name.strip() for name in schema.names]
        self._stored = dict(zip(self.names, schema.names))
        self.types = dict(zip(self.names, schema.types))
        if written:  # shows categories of numbers, which the file schema omits
            schema = arrow.ipc.read_schema(arrow.py_buffer(base64.b64decode(written)))
        self.words = [one.name.strip() for one in schema if arrow.types.is_dictionary(one.type)]

    def _open(self) -> Any:
        return parquet.ParquetFile(self.path, buffer_size=2**20, pre_buffer=False)

    def _batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        with self._open() as file:
            stored = [self._stored[name] for name in columns]
            for batch in file.iter_batches(batch_size=size, columns=stored):
                names = batch.schema.names  # may contain a name twice: refused later, by name
                cells = [batch.column(names.index(name)) for name in stored]
                for name, one in zip(columns, cells):
                    try:
                        _ = as_text(one) if "binary" in str(one.type) else one
                    except arrow.ArrowInvalid as error:
                        what = f"column {name!r} holds bytes that are not UTF-8"
                        raise ValueError(f"{what}: store strings, or leave it out") from error
                yield arrow.RecordBatch.from_arrays(cells, [*columns])


class SVMLight(Format):
    """A LIBSVM file, "label index:value ...". Its columns are the label y, and x0, x1, ..."""

    def __init__(self, path: str, reading: Reading) -> None:
        self.path = path
        content = open_bytes(path).read()
        rows = (line.split(b"#")[0].split(None, 1) for line in io.BytesIO(content))
        fields = [row for row in rows if row]
        self._labels = [row[0].decode() for row in fields]
        self.num_rows = len(self._labels)
        grouped = any(row[1:] and row[1].startswith(b"qid:") for row in fields)
        self.left_out = ["qid, the groups of rows"] * grouped
        self.X = _sparse(content)
        self._first = int(self.X[:, [0]].nnz == 0)
        asked = (re.match(r"x\d+(?==|$)", name) for name in reading.features or ())
        known = [name[0] for name in asked if name]
        if reading.is_prediction:
            self._check_indices(reading.features or ())
            self.left_out += self._of_unknown(known)
        own = (f"x{number}" for number in range(self._first, self.X.shape[1]))
        self.names = [*dict.fromkeys(("y", *own, *known))]
        self.X.resize(self.num_rows, max(int(name[1:] or 0) for name in self.names) + 1)
        told = self.names if reading.na_values else (*reading.told_words, *reading.dates)
        self.types = dict.fromkeys(told, arrow.float64()) | {"y": arrow.string()}

    def widen(self, width: int, reading: Reading) -> None:
        """Add columns of 0 until there are `width`, as in the widest of several files."""
        more = [f"x{number}" for number in range(self.X.shape[1], width)]
        self.names = [*self.names, *more]
        self.types |= dict.fromkeys(more if reading.na_values else (), arrow.float64())
        self.X.resize(self.num_rows, width)

    def _check_indices(self, features: Sequence[str]) -> None:
        """:raise ValueError: if the indices of a model's features count from another number."""
        known = [int(name[1:]) for name in features if re.fullmatch(r"x\d+", name)]
        number = len(known)
        here = self._first
        there = 1 - here
        shifted = here == 0 or self.X.shape[1] == number + 1  # a file may lack the values of x0
        if known == [*range(there, number + there)] and shifted:
            raise ValueError(
                f"the indices of {self.path} count from {here}, but in the training file "
                f"from {there}: count as in training"
            )

    def _of_unknown(self, known: Collection[str]) -> list[str]:
        """:return: a note on values in other columns, if there are any."""
        counts = {f"x{n}": count for n, count in enumerate(self.X.getnnz(axis=0).tolist())}
        lost = [name for name, count in counts.items() if count and name not in known]
        values = sum(counts[name] for name in lost)
        which = f"columns that the model does not have, {listed(lost)}"
        return [f"{values} values of {which}"] if lost else []

    def _batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        places = [int(name[1:]) for name in columns if name != "y"]
        for start in range(0, self.num_rows or 0, size):
            X = iter(self.X[start : start + size, places].toarray().T)
            y = self._labels[start : start + size]
            cells = [y if name == "y" else next(X) for name in columns]
            yield arrow.RecordBatch.from_arrays([*map(arrow.array, cells)], [*columns])


def _sparse(content: bytes) -> Any:
    try:
        return datasets.load_svmlight_file(io.BytesIO(content), zero_based=True)[0]
    except ValueError as error:
        why = str(error).rstrip(".")
        if "sorted" not in why:
            why += ": labels and values must be numbers; words need CSV or Parquet"
        raise ValueError(why) from error


def open_bytes(path: str) -> Any:
    """:return: the decompressed content; the first bytes, or else the name, give the format."""
    with open(path, "rb") as file:
        start = file.read(10)
    if start.startswith(b"\xfd7zXZ\0"):
        return arrow.input_stream(lzma.open(path))
    kinds = [kind for kind, pattern in _PACKED.items() if re.match(pattern, start)]
    return arrow.input_stream(path, compression=kinds[0] if kinds else "detect")


def open_text(path: str, encoding: str, newline: str | None = "", errors: str = "strict") -> Any:
    """:return: the lines of a file, compressed or not."""
    return io.TextIOWrapper(open_bytes(path), encoding, errors, newline)


def check_width(row: Sequence[Any], width: int, line: int) -> None:
    """:raise ValueError: unless the row on this line has `width` values."""
    if len(row) != width:
        raise ValueError(f"line {line}: Expected {width} columns, got {len(row)}")


@contextmanager
def named(path: str) -> Iterator[None]:
    """:raise ValueError: for errors in reading; the message names the file."""
    known = arrow.ArrowException, ValueError, TypeError, OSError, csv.Error, NotImplementedError
    cut = EOFError, lzma.LZMAError, OverflowError  # truncated files, too large indices
    try:
        yield
    except (*known, *cut) as error:
        why = (str(error) or type(error).__name__).splitlines()[0]
        if isinstance(error, ValueError) and path in why:
            raise
        if isinstance(error, UnicodeEncodeError):
            why = "the name of the file is not UTF-8: rename it"
        elif isinstance(error, UnicodeError):
            found = re.search(r"(?i)utf-?\d+", why)
            name = found[0] if found else "of this encoding"
            why = f"it is not {name}: give its encoding, such as encoding='cp1252' on Windows"
        hint = "; a closing quotation mark may be missing" if isinstance(error, csv.Error) else ""
        raise ValueError(f"cannot read {path}: {why}{hint}") from error


class Arff(Format):
    """An ARFF file. Attributes with a list of values are words; ? means a missing value."""

    def __init__(self, path: str, head: str, encoding: str) -> None:
        """:raise ValueError: if the first lines, `head`, do not declare the columns."""
        lines = head.split("\n")  # counted as in `_rows`: a form feed does not end a line
        ends = [n for n, line in enumerate(lines, 1) if re.match(r"(?i)\s*@data\b", line)]
        if not ends:
            raise ValueError("its first lines have no @data")
        self.path = path
        self.encoding = encoding
        self.header = ends[0]
        above = [line for line in lines[: self.header] if line.lstrip()[:10].lower() == _DECLARES]
        declared = [*map(_declared, above)]
        self.names = [name for name, *_ in declared]
        self.types = dict.fromkeys(self.names, arrow.string())
        self.words = [name for name, kind, _ in declared if kind[:1] == "{"]
        orders = {name: order for name, kind, order in declared if kind.lower() == "date"}
        self.dates = {name: order for name, order in orders.items() if not _ISO.match(order)}

    def _rows(self) -> Iterator[Sequence[str | None]]:
        width = len(self.names)
        with open_text(self.path, self.encoding, newline=None) as lines:
            for number, line in enumerate(map(str.strip, lines), 1):
                if number > self.header and line and not line.startswith("%"):
                    row = _values(_COMMENT.sub(r"\1", line), number)
                    row = row[:width] if row[width:] == [""] else row  # trailing comma
                    if re.fullmatch(r"\{[^{}]*\}", row[-1] or "") and len(row) > width:
                        raise ValueError(f"line {number} has a weight, {row[-1]}: make it a column")
                    check_width(row, width, number)
                    yield row


def _declared(line: str) -> tuple[str, str, str]:
    """:return: a column's name, its type (a list begins with {) and its date format."""
    found = _ATTRIBUTE.match(line)
    if found is None or not (found[2].startswith("{") or found[2].lower() in _TYPES):
        known = f"a list {{...}} or one of {', '.join(_TYPES)}"
        raise ValueError(f"{line.strip()!r} does not declare a column: its type must be {known}")
    return _plain(found[1]).strip(), found[2], _plain(found[3] or "")


def _values(line: str, number: int) -> list[str | None]:
    if line.startswith("{"):
        raise ValueError(
            f"line {number} is sparse, {{index value, ...}}: save it with dense rows or as svmlight"
        )
    if "'" not in line and '"' not in line:
        fields = [*map(str.strip, line.split(","))]
    else:
        fields = _FIELD.findall(line)
    if any(field[:1] in ("'", '"') and not re.fullmatch(_QUOTED, field) for field in fields):
        raise ValueError(f"line {number} may lack a closing quotation mark")
    return [None if field == "?" else _plain(field) for field in fields]


def _plain(field: str) -> str:
    """:return: a string without Weka's quotation marks and escapes."""
    if field[:1] not in ("'", '"'):
        return field
    return re.sub(r"\\(u[\da-fA-F]{4}|.)", _sign, field[1:-1])


def _sign(escape: re.Match[str]) -> str:
    sign = escape[1]
    return chr(int(sign[1:], 16)) if len(sign) > 1 else _UNSEEN.get(sign, sign)
