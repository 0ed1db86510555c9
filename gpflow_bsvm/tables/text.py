"""Text tables: encoding, separator and column names."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import statistics
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..notices import warn
from ..optional import Later
from . import formats
from .cells import arrow
from .paths import ARFF, OTHERS, PARQUET, ROW_NAMES, SVMLIGHT, folders_of
from .reading import Reading

arrow_csv = Later("pyarrow.csv", "files")

#: Numbers of characters and lines used to detect the format of a file.
_HEAD = 2**20
_HEAD_LINES = 1000
#: Separators in order of preference; the comma comes late, because it may be a decimal sign.
_SEPARATORS = (";", "\t", "|", ",", " ")
#: Names for separators that are awkward to type in a shell.
_SPELLED = {"\\t": "\t", "tab": "\t", "space": " "}
#: Replaces spaces that the csv module must not skip; never occurs in a file.
_SPACE = "\ud800"
_NUMBER = r"[+-]?[\d.]+([eE][+-]?\d+)?"
#: A first line that declares the separator, as Excel understands it.
_SAID = re.compile(r'"?sep=(.)"?\n', re.IGNORECASE)


def read_head(path: str, encoding: str | None) -> tuple[str, str]:
    """
    :return: the first lines of a file, and its encoding.
    :raise ValueError: if the file is empty or has another encoding.
    """
    with formats.open_bytes(path) as stream:
        utf16 = stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    found = encoding or ("utf-16" if utf16 else "utf-8-sig")
    try:
        with formats.open_text(path, found, newline=None) as lines:
            text = lines.read(_HEAD) + lines.readline() + lines.readline()
    except LookupError:
        raise ValueError(f"no encoding is called {found!r}: try encoding='cp1252'") from None
    text = text.removeprefix("\ufeff")  # still there if the user gives the encoding
    if not text.strip():
        raise ValueError("it is empty, without a header line")
    if "\0" in text:
        raise ValueError("it is not text, or it needs an encoding such as 'utf-16' or 'utf-32'")
    latin = codecs.lookup(found).name.startswith("iso8859")
    if latin and (unseen := re.search(r"[\x80-\x9f]", text)):
        warn(
            f"{path} has {unseen[0]!r}, which is invisible in {found}: if it should be a quotation "
            "mark, a dash or a sign such as the euro's, give encoding='cp1252'"
        )
    return text, found


class Text(formats.Format):
    """A text table. Its values are the strings in the file; a column's name may be ""."""

    def __init__(self, path: str, head: str, encoding: str, reading: Reading) -> None:
        """:raise ValueError: if the first lines, `head`, have no header."""
        self.path = path
        self.encoding = encoding
        names = reading.names
        separator = _told_separator(reading)
        if said := _SAID.match(head):
            separator = separator or said[1]
            head = head[said.end() :]
        self.separator = separator or _separator(head, names is None)
        rows, header, self._skips = _records(head, self.separator)
        self._quotes_checked = len(head) < _HEAD  # a longer head may end within quotes
        if self._quotes_checked:
            _check_quotes(io.StringIO(head), self.separator, self._skips)
        header *= names is None
        body = "\n".join(head.split("\n")[header:])
        self.header = bool(said) + header
        self.names = [name.strip() for name in (rows.pop(0) if names is None else names)]
        if names is None:
            quoted = all(text.lstrip().startswith('"') for text in (head, body))  # as R writes
            self._check_header(rows, quoted)
        self._spaced = self._has_spaces(body)
        self.may_have_commas = self.separator in ";\t"
        self.types = dict.fromkeys(self.names, arrow.string())
        self._block = max(2**20, 64 * max(map(len, head.split("\n"))))

    def _has_spaces(self, text: str) -> bool:
        """:return: True if a space after each separator belongs to the separator, not the text."""
        sign = re.escape(self.separator)
        bare = re.sub(rf'(?m)((?:^|{sign}) *)"(?:[^"]|"")*"', r'\1"', text)
        lines = bare.split("\n")[:_HEAD_LINES]
        fields = [field for line in lines for field in line.split(self.separator)[1:] if field]
        return fields != [] and all(field.startswith(" ") for field in fields)

    def _begin_with_names(self, rows: list[list[str]], quoted: bool) -> bool:
        """:return: True if it is certain that rows begin with R's row names."""
        first = [row[0] for row in rows]
        texts = not any(re.fullmatch(_NUMBER, text) for text in first)
        counted = [*map(str, range(len(first) + 1))]
        if len({*first}) < len(first) or not (quoted or texts or first == counted[1:]):
            return False
        whole = [all(re.fullmatch(r"-?\d+", text) for text in column) for column in zip(*rows)]
        # Two adjacent columns of integers may be one with decimal commas: 28,4.
        return quoted or self.separator != "," or not any(map(min, whole, whole[1:]))

    def _check_header(self, rows: list[list[str]], quoted: bool) -> None:
        names = self.names
        width = statistics.mode(map(len, rows or [names]))
        if width > len(names) + 1 or (names[0][:1] == "#" and width != len(names)):
            sign = ", and the # in the header" if names[0][:1] == "#" else ""
            sign += ", or write decimal commas as points" * (self.separator == ",")
            raise ValueError(
                f"the first line of {self.path}, {self.separator.join(names)!r}, does not have the "
                f"names of {width} columns: delete the lines before the header{sign}"
            )
        numbers = [name for name in names if re.fullmatch(_NUMBER, name)]
        counted = [*map(str, range(len(names)))]  # as pandas does
        if len(numbers) > len(names) / 2 and names != counted:
            raise ValueError(
                f"the first line of {self.path} has numbers instead of the columns' names "
                f"({', '.join(names[:4])}, ...): if it is a row, give names=[...] "
                f"with the names of all {len(names)} columns; if not, put a letter before each"
            )
        if rows and all(len(row) == len(names) + 1 for row in rows):
            self._add_name(rows, quoted)

    def _add_name(self, rows: list[list[str]], quoted: bool) -> None:
        if not any(row[-1] for row in rows):  # lines end with a separator
            self.names = [*self.names, ""]
        elif self._begin_with_names(rows, quoted):
            self.names = [ROW_NAMES, *self.names]
        else:
            raise ValueError(
                f"the rows of {self.path} have one more field than the first line: quote "
                'strings that contain the separator, and double any " inside them; write '
                f"decimal commas as points; or begin the first line with {ROW_NAMES} if the "
                "rows begin with their names"
            )

    def _batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        slow = self._spaced or self._skips
        try:
            yield from super()._batches(columns, size) if slow else self._fast(columns)
        except arrow.ArrowInvalid:  # read again to find the line
            deque(self._rows(), maxlen=0)
            raise
        if not self._quotes_checked:
            with formats.open_text(self.path, self.encoding, errors="replace") as lines:
                _check_quotes(lines, self.separator, self._skips)
            self._quotes_checked = True

    def _fast(self, columns: Sequence[str]) -> Iterator[Any]:
        with arrow_csv.open_csv(
            formats.open_bytes(self.path),
            arrow_csv.ReadOptions(
                column_names=self.names,
                skip_rows=self.header,
                encoding=self.encoding.removesuffix("-sig"),
                block_size=self._block,
            ),
            arrow_csv.ParseOptions(
                delimiter=self.separator,
                newlines_in_values=True,
                ignore_empty_lines=len(self.names) > 1,  # else a missing value
            ),
            arrow_csv.ConvertOptions(column_types=self.types, include_columns=columns),
        ) as batches:
            yield from batches

    def _rows(self) -> Iterator[list[str]]:
        """:return: rows with spaces as or after separators, which pyarrow cannot read."""
        width = len(self.names)
        with formats.open_text(self.path, self.encoding) as lines:
            rest: Iterator[str] = itertools.islice(lines, self.header, None)
            if self._skips and self.separator != " ":  # skip only spaces before quotation marks
                kept = re.compile(rf'(?:^|{re.escape(self.separator)}) +(?![ "])')
                rest = (kept.sub(lambda one: one[0].replace(" ", _SPACE), line) for line in rest)
            reader = csv.reader(rest, delimiter=self.separator, skipinitialspace=self._skips)
            # If there is only one column, a blank line is a missing value.
            for row in filter(None, reader) if width > 1 else (row or [""] for row in reader):
                row = row[:width] if row[width:] == [""] else row  # trailing space
                formats.check_width(row, width, self.header + reader.line_num)
                if self._spaced:
                    sign = _SPACE if self._skips else " "
                    row[1:] = [value.removeprefix(sign) for value in row[1:]]
                yield [value.replace(_SPACE, " ") for value in row]


def open_formats(paths: Sequence[str], reading: Reading) -> list[formats.Format]:
    """:return: the tables in the files, with columns from folder names."""
    files = [open_format(path, reading) for path in paths]
    sparse = [file for file in files if isinstance(file, formats.SVMLight)]
    for one in sparse:
        one.widen(max(other.X.shape[1] for other in sparse), reading)
    for file, own in zip(files, folders_of(paths, reading.is_prediction)):
        file.folders = {name: value for name, value in own.items() if name not in file.names}
        file.types |= dict.fromkeys(file.folders, arrow.string())
    return files


def open_format(path: str, reading: Reading) -> formats.Format:
    """
    :return: the table in a file.
    :raise ValueError: for an unreadable file, or for names or a separator with Parquet or ARFF.
    """
    kind = path.lower()
    told = reading.names is not None or reading.separator is not None
    if told and kind.endswith((*PARQUET, *ARFF)):
        raise ValueError(f"names and separator are for CSV files: leave them out for {path}")
    with formats.named(path):
        with open(path, "rb") as file:
            start = file.read(4)
        if kind.endswith(OTHERS) or start == b"PK\3\4":  # zipped, as in Excel
            is_zip = kind.endswith(".zip")
            advice = "unpack it, or compress it with gzip" if is_zip else "save it as one of these"
            raise ValueError(f"{path} is neither CSV nor Parquet: {advice}")
        if kind.endswith(PARQUET) or start == b"PAR1":
            return formats.Parquet(path)
        head, encoding = read_head(path, reading.encoding)
        if kind.endswith(ARFF):
            return formats.Arff(path, head, encoding)
        if not told and (kind.endswith(SVMLIGHT) or _is_svmlight(head)):
            return formats.SVMLight(path, reading)
        return Text(path, head, encoding, reading)


def _is_svmlight(head: str) -> bool:
    lines = [line for line in head.split("\n")[:20] if line.split("#")[0].strip()]
    return all(re.match(r"^\S+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?$", line) for line in lines)


def _check_quotes(lines: Iterable[str], separator: str, skips: bool) -> None:
    """:raise ValueError: for misplaced quotation marks, which would change strings."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=skips, strict=True)
    try:
        deque(reader, maxlen=0)
    except csv.Error as error:
        hint = "close every quotation mark, and double quotation marks inside strings"
        raise ValueError(f"line {reader.line_num}: {error}; {hint}") from None


def _records(text: str, separator: str) -> tuple[list[list[str]], int, bool]:
    """
    :return: the fields of the first nonempty lines; the number of the line where the first ends;
        whether spaces between a separator and quotation marks are skipped.
    """
    for skips in (separator == " ", True):
        reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=skips)
        rows = filter(None, reader)
        first = next(rows)
        end = reader.line_num
        found = [first, *itertools.islice(rows, _HEAD_LINES)]
        if not any(field.startswith(' "') for row in found for field in row):
            break
    return found, end, skips


def _told_separator(reading: Reading) -> str | None:
    separator = _SPELLED.get(reading.separator or "", reading.separator)
    if separator and len(separator) > 1:
        raise ValueError(f"a separator must be one character, 'tab' or 'space', got {separator!r}")
    return separator


def _separator(text: str, header: bool) -> str:
    """:return: the separator that splits all lines into the same, largest number of fields."""
    widths = {one: _width(text, one, header) for one in _SEPARATORS}
    if not any(widths.values()):
        return max(",;\t|" + " " * text.startswith("# "), key=text.count)
    of_signs = {one: width for one, width in widths.items() if width and one != " "}
    return max(of_signs or widths, key=widths.__getitem__)


def _width(text: str, separator: str, header: bool) -> float:
    """:return: the common number of fields, minus 1/2 if the header lacks one; 0 if it varies."""
    try:
        rows, _, _ = _records(text, separator)
    except csv.Error:  # with a wrong separator, a field may be too long
        return 0
    width = len(rows[-1])
    short = width - len(rows[0]) if header else 0
    same = all(len(row) == width for row in rows[header:])
    return width - short / 2 if width > 1 + short and same and short in (0, 1) else 0
