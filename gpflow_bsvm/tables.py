"""Tables in files, as every command reads them: where they are, the format of a CSV, names of
columns. Nothing here needs TensorFlow, so that an error about a file is instant."""

from __future__ import annotations

import codecs
import csv
import glob
import itertools
import os
import re
from collections.abc import Sequence
from typing import Any

from .optional import require

CSV, PARQUET = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst"), (".parquet", ".pq")
#: Names of a column of labels where the user gives none.
TARGETS = ("y", "target", "class", "label")
#: Texts that stand for a missing value, besides those that both pandas and pyarrow know.
MISSING = ("None", "<NA>")
#: Names that pandas gives its index, which is the order of rows and no feature.
_INDEX = re.compile(r"|Unnamed: [\d.]+|__index_level_\d+__")
#: Lines that show how numbers are written, and bytes that they may have.
_HEAD, _HEAD_BYTES = 1000, 2**20
#: A text column of more distinct words than this is not a category.
MOST_WORDS = 50
#: In fewer rows than this numbers may rise by 1 from row to row by chance.
_FEWEST_COUNTED = 10


def find_files(path: Any, endings: tuple[str, ...]) -> list[str]:
    """
    :param path: of a file, of a directory, or of several files.
    :return: files; those of a directory in the order of their names.
    :raise FileNotFoundError: if there is no such file.
    """
    if not isinstance(path, (str, os.PathLike)):
        return [found for one in path for found in find_files(one, endings)]
    name = os.fspath(path)
    if not os.path.isdir(name):
        if not os.path.exists(name):
            raise FileNotFoundError(f"there is no file {name}")
        return [name]
    inside = glob.glob(os.path.join(glob.escape(name), "**", "*"), recursive=True)
    found = sorted(one for one in inside if one.endswith(endings) and os.path.isfile(one))
    if not found:
        raise FileNotFoundError(f"directory {name} has no files *{', *'.join(endings)}")
    return found


def endings_of(path: str) -> tuple[str, ...]:
    """:return: `PARQUET` if this is such a file or a directory with one, else `CSV`."""
    inside = glob.iglob(os.path.join(glob.escape(path), "**", "*"), recursive=True)
    names = inside if os.path.isdir(path) else [path]
    return PARQUET if any(name.endswith(PARQUET) for name in names) else CSV


def style(path: str) -> tuple[str, str]:
    """:return: the field separator of a CSV, and its decimal point, by the first lines."""
    lines = _head(path)
    header = re.sub(r'"[^"]*"', "", lines[0] if lines else "")
    separator = max(",;\t|", key=header.count)
    fields = itertools.chain.from_iterable(csv.reader(lines[1:], delimiter=separator))
    comma = separator != "," and any(re.fullmatch(r"-?\d+,\d+", field) for field in fields)
    return separator, "," if comma else "."


def _head(path: str) -> list[str]:
    """:return: the first lines of a file, compressed or not."""
    with require("pyarrow", extra="files").input_stream(path) as stream:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()  # the last letter may be cut
        return decoder.decode(stream.read(_HEAD_BYTES)).splitlines()[:_HEAD]


def csv_options(path: str, names: Sequence[str] | None = None) -> dict[str, Any]:
    """
    :param names: of the columns, where the first line has none.
    :return: options with which pyarrow reads a CSV.
    """
    arrow = require("pyarrow.csv", extra="files")
    separator, decimal = style(path)
    missing = [*arrow.ConvertOptions().null_values, *MISSING]
    converts = {"decimal_point": decimal, "null_values": missing, "strings_can_be_null": True}
    return {
        "read_options": arrow.ReadOptions(column_names=names),
        "parse_options": arrow.ParseOptions(delimiter=separator),
        "convert_options": arrow.ConvertOptions(**converts),
    }


def own_columns(names: Sequence[str]) -> list[str]:
    """:return: the columns, without the index that pandas writes beside them."""
    return [name for name in names if not _INDEX.fullmatch(str(name))]


def columns(path: str) -> list[str]:
    """
    :return: names in the header of a file.
    :raise ValueError: for a file that cannot be read, or is empty.
    """
    try:
        if path.endswith(PARQUET):
            parquet = require("pyarrow.parquet", extra="files")
            return list(parquet.read_schema(path).names)
        lines = _head(path)
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number else str(error).splitlines()[0]
        raise ValueError(f"cannot read {path}: {reason}") from error
    if not lines:
        raise ValueError(f"file {path} cannot be read: it is empty, without a header line")
    return next(csv.reader(lines, delimiter=style(path)[0]), [])


def target_among(path: str, names: Sequence[str], target: str | None) -> str:
    """
    :return: the column of labels: `target`, or that of `TARGETS` which is there.
    :raise ValueError: if there is none, or several.
    """
    if target in names:
        return str(target)
    numbers = sum(map(is_number, names)) > len(names) / 2
    hint = "; is the header line missing?" if numbers else ""
    if target is not None:
        case = [name for name in names if name.lower() == target.lower()]
        also = f" (the names differ only in case: {case[0]})" if case else ""
        raise ValueError(
            f"{path} has no column {target!r}; it has {listed(own_columns(names))}{also}{hint}"
        )
    found = [name for name in TARGETS if name in names]
    if len(found) == 1:
        return found[0]
    raise ValueError(
        f"which column of {path} holds the labels? Name it with target (--target COL); "
        f"there is {'more than one' if found else 'none'} of {', '.join(TARGETS)} among "
        f"{listed(names)}{hint}"
    )


def counts_rows(values: Any) -> bool:
    """:return: True if a column of numbers rises by 1 from row to row, as row numbers do."""
    steps = values[1:] - values[:-1]
    return len(values) >= _FEWEST_COUNTED and bool((steps == 1).all())


def about_counted(name: str) -> str:
    """:return: a note on such a column."""
    return f"column {name!r} rises by 1 from row to row: is it a row number? Then leave it out"


def word_of(feature: str, names: Sequence[str]) -> tuple[str, str] | None:
    """:return: column and word of a feature "column=word", if there is no column of that name."""
    if feature in names:
        return None
    cuts = [n for n, letter in enumerate(feature) if letter == "=" and feature[:n] in names]
    return (feature[: cuts[0]], feature[cuts[0] + 1 :]) if cuts else None


def is_number(text: str) -> bool:
    """:return: True if this is a value rather than a column's name."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def listed(names: Sequence[str], most: int = 8) -> str:
    """:return: names, or the first of many, for an error."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def quoted(names: Sequence[str]) -> str:
    """:return: names, or the first of many, in quotation marks."""
    return listed([repr(name) for name in names])
