"""How a table of text is written: its encoding, its separator, and the names of its columns."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..optional import require
from .paths import ROW_NAMES, is_number

#: Bytes and lines that show how a file is written.
_HEAD_BYTES, _HEAD_LINES = 2**20, 1000
#: The first of those that serve equally well is taken: commas may be decimal signs.
_SEPARATORS = (";", "\t", "|", ",", " ")
#: An svmlight file may have more.
_MOST_COLUMNS = 100_000
#: Separators that a shell does not like to be given.
SPELLED = {"\\t": "\t", "tab": "\t", "space": " "}
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class Dialect(NamedTuple):
    """
    :ivar names: of all columns, without the spaces around them; "" where the header has none.
    :ivar spaced: whether spaces after a separator belong to it.
    :ivar header: number of lines until the names have ended; 0: there are none.
    :ivar longest: number of bytes of the longest line that was seen.
    """

    encoding: str
    separator: str
    names: list[str]
    spaced: bool = False
    header: int = 1
    quote: str = '"'
    longest: int = 0


def read_head(path: str, encoding: str | None = None) -> tuple[str, str]:
    """
    :return: the first lines of a file, compressed or not, and its encoding.
    :raise ValueError: if it is not of that encoding, or empty.
    """
    with require("pyarrow", extra="files").input_stream(path) as stream:
        raw = stream.read(_HEAD_BYTES)
        while raw.count(b"\n") < 2 and (more := stream.read(_HEAD_BYTES)):
            raw += more
        cut = len(raw) >= _HEAD_BYTES and bool(stream.read(1))
    found = encoding or next(
        (name for mark, name in _MARKS.items() if raw.startswith(mark)), "utf-8"
    )
    try:
        text = codecs.getincrementaldecoder(found)().decode(raw, final=not cut)
    except (UnicodeError, LookupError):
        raise ValueError(
            f"it is not {found}: say what it is, as encoding='cp1252' for files of Windows"
        ) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise ValueError("it is empty, without a header line")
    if "\0" in text:
        raise ValueError("it is no text, or text of an encoding such as encoding='utf-16'")
    return (text[: text.rindex("\n") + 1] if cut and "\n" in text else text), found


def find_dialect(
    path: str,
    separator: str | None = None,
    encoding: str | None = None,
    names: Sequence[str] | None = None,
) -> Dialect:
    """
    :param separator: None: that which cuts all of the first lines into equally many fields.
    :param names: of all columns, where the first line is a row already.
    :return: the dialect of a table.
    :raise ValueError: for a file that cannot be read, is empty, or has no header.
    """
    text, encoding = read_head(path, encoding)
    separator = SPELLED.get(separator or "", separator) or _separator(text, names is None)
    rows = records(text, separator)
    header = 0 if names is not None else _lines_of_header(text, separator)
    spaced = separator == " " or _is_spaced(rows[names is None :])
    first, rest = (rows[0], rows[1:]) if names is None else (list(names), rows)
    found = [name.strip() for name in first]
    if names is None:
        _check_header(path, found)
    wider = bool(rest) and all(len(row) == len(found) + 1 for row in rest)
    if wider and header:  # a separator at the end of each row, or R's names of rows
        found = [*found, ""] if not any(row[-1] for row in rest) else [ROW_NAMES, *found]
    if len(found) > _MOST_COLUMNS:
        raise ValueError(f"it has {len(found)} columns, and at most {_MOST_COLUMNS} are read")
    longest = max(map(len, text.split("\n"))) * 4
    return Dialect(encoding, separator, found, spaced, header, longest=longest)


def records(text: str, separator: str, quote: str = '"') -> list[list[str]]:
    """:return: the fields of the first lines that are not empty."""
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=separator,
        quotechar=quote,
        skipinitialspace=separator == " ",
    )
    try:
        return list(itertools.islice(filter(None, reader), _HEAD_LINES))
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}; is a quotation mark open?") from None


def _lines_of_header(text: str, separator: str) -> int:
    """:return: the number of lines up to the end of the first that are not empty."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    next(filter(None, reader))
    return int(reader.line_num)


def _separator(text: str, header: bool) -> str:
    """:return: the separator by which lines have equally many fields, and most of them."""
    widths = {one: _width(text, one, header) for one in _SEPARATORS}
    if not any(widths.values()):
        return max(",;\t|", key=text.split("\n", 1)[0].count)
    of_signs = {one: width for one, width in widths.items() if width and one != " "}
    return max(of_signs or widths, key=widths.__getitem__)


def _width(text: str, separator: str, header: bool) -> float:
    """:return: the number of fields of all rows, a little less if the header has one less; or 0."""
    try:
        rows = records(text, separator)
    except ValueError:  # of another separator, a field may be too long
        return 0
    width = len(rows[-1])
    short = width - len(rows[0]) if header else 0
    same = all(len(row) == width for row in rows[header:])
    return width - short / 2 if width > 1 + short and same and short in (0, 1) else 0


def _is_spaced(rows: list[list[str]]) -> bool:
    """:return: True if every field after a separator begins with a space."""
    fields = [field for row in rows for field in row[1:] if field]
    return bool(fields) and all(field.startswith(" ") for field in fields)


def _check_header(path: str, names: list[str]) -> None:
    """:raise ValueError: for a first line that is a row."""
    counted = [str(number) for number in range(len(names))]  # as pandas may call them
    if sum(map(is_number, names)) > len(names) / 2 and names != counted:
        raise ValueError(
            f"the first line of {path} has numbers instead of the columns' names "
            f"({', '.join(names[:4])}, ...): give names=[...], those of all {len(names)} columns, "
            "if it is a row"
        )


def open_text(path: str, encoding: str) -> Any:
    """:return: the lines of a file, compressed or not."""
    stream = require("pyarrow", extra="files").input_stream(path)
    return io.TextIOWrapper(stream, encoding=encoding, newline="")
