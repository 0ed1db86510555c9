"""ARFF files of Weka or OpenML. They declare their columns; strings may have escapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .cells import arrow
from .formats import Format, check_width, in_batches, open_text

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"\s*@attribute\s+({_QUOTED}|[^\s{{]+)\s*([{{\w]*)\s*({_QUOTED})?", re.I)
_FIELD = re.compile(rf"(?:^|,)\s*({_QUOTED}|[^,]*?)\s*(?=,|$)")
#: A quoted string, or a comment after a space.
_COMMENT = re.compile(rf"((?<![^\s,])(?:{_QUOTED}))|\s%.*")
_DECLARES = "@attribute"
_TYPES = ("numeric", "real", "integer", "string", "date")
#: Date formats in ISO 8601 order, including Weka's default.
_ISO = re.compile(r"$|yyyy-MM-dd|HH:mm")
#: Weka's escapes for invisible characters.
_UNSEEN = {"n": "\n", "r": "\r", "t": "\t"}


class Arff(Format):
    """An ARFF file. Attributes with a list of values are words; ? is a missing value."""

    def __init__(self, path: str, head: str, encoding: str) -> None:
        """
        :param head: the first lines.
        :raise ValueError: if they do not declare the columns.
        """
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

    def _batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        return in_batches(self._rows(), self.names, columns, size)

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
    """:return: a column's name, its type (a list begins with {), and its date format."""
    found = _ATTRIBUTE.match(line)
    if found is None or not (found[2].startswith("{") or found[2].lower() in _TYPES):
        known = f"a list {{...}} or one of {', '.join(_TYPES)}"
        raise ValueError(f"{line.strip()!r} does not declare a column: its type must be {known}")
    return _plain(found[1]), found[2], _plain(found[3] or "")


def _values(line: str, number: int) -> list[str | None]:
    if line.startswith("{"):
        raise ValueError(
            f"line {number} is sparse, {{index value, ...}}: save it as dense or as svmlight"
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
