"""Find table files, and list names and values for messages."""

from __future__ import annotations

import difflib
import glob
import os
import re
import reprlib
import urllib.parse
from collections.abc import Iterable, Sequence
from typing import Any


def _packed(*endings: str) -> tuple[str, ...]:
    return tuple(one + packed for one in endings for packed in ("", ".gz", ".bz2", ".xz", ".zst"))


CSV = _packed(".csv", ".tsv", ".tab", ".txt", ".dat", ".data")
PARQUET = (".parquet", ".pq")
ARFF = _packed(".arff")
SVMLIGHT = _packed(".svm", ".svmlight", ".libsvm")
ENDINGS = CSV + PARQUET + ARFF + SVMLIGHT
#: Unsupported table files; a spreadsheet or pandas can save them as CSV or Parquet.
OTHERS = (".json", ".jsonl", ".xlsx", ".xls", ".ods", ".feather", ".rds", ".sav", ".zip")
#: Our name for the column of row names, which R writes first, without a name in the header.
ROW_NAMES = "row.names"
#: Names of an index written by pandas or R: row numbers or row names, not a feature.
_INDEX = re.compile(rf"|Unnamed: [\d.]+|__index_level_\d+__|{ROW_NAMES}")
#: A folder in which a writer keeps unfinished rows or a log, such as Spark's `_temporary`.
_WRITERS = re.compile(r"(^|[/\\])_[^/\\=]*[/\\]")
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 40


def find_files(path: Any, endings: tuple[str, ...] = ENDINGS) -> list[str]:
    """
    :return: file paths of a file, a directory (in the order of names), or several of these.
    :raise FileNotFoundError: if there is no such file.
    :raise ValueError: for a pipe or a device, which can be read only once; for no path.
    """
    if not isinstance(path, (str, os.PathLike)):
        several = [*path] if isinstance(path, Iterable) and not isinstance(path, bytes) else []
        if not several:
            raise ValueError(f"expected a file, a directory or a list of these, got {path!r}")
        return [found for one in several for found in find_files(one, endings)]
    name = os.fspath(path)
    if not os.path.exists(name):
        raise FileNotFoundError(f"there is no file {name}")
    if os.path.isfile(name):
        return [name]
    if not os.path.isdir(name):
        raise ValueError(f"{name} is a pipe or a device, but rows are read twice: save it first")
    inside = [one for one in _inside(name) if not _WRITERS.search(os.path.relpath(one, name))]
    found = [one for one in inside if one.lower().endswith(endings)]
    if not found:
        shown = ", *".join(one for one in endings if one.count(".") == 1)
        raise FileNotFoundError(f"directory {name} has no files *{shown}")
    return found


def _inside(folder: str) -> list[str]:
    """:return: the files of a directory and its subdirectories, except hidden ones."""
    inside = glob.iglob(os.path.join(glob.escape(folder), "**", "*"), recursive=True)
    return sorted(filter(os.path.isfile, inside))


def about_folder(folder: str, found: Sequence[str]) -> str:
    """:return: a description of the files found in a directory."""
    names = [os.path.relpath(one, folder) for one in found]
    first_and_last = " to ".join(dict.fromkeys((names[0], names[-1])))
    below = ", including subdirectories" * any(map(os.path.dirname, names))
    others = sorted({*_inside(folder)} - {*found})
    left_out = f"; left out: {listed(os.path.relpath(one, folder) for one in others)}"
    read = f"{len(names)} files of {folder} are read{below}: {first_and_last}"
    return read + left_out * bool(others)


def folders_of(paths: Sequence[str], of_prediction: bool) -> list[dict[str, str | None]]:
    """
    :param of_prediction: whether folders that contain all files also give columns.
    :return: the columns and values in the names of each file's folders, as in Hive.
    """
    found = [os.path.dirname(os.path.abspath(path)) for path in paths]
    root = os.path.commonpath(found)
    while of_prediction and "=" in os.path.basename(root):
        root = os.path.dirname(root)
    below = [os.path.relpath(folder, root).split(os.sep) for folder in found]
    return [dict(_value(name) for name in names if "=" in name) for names in below]


def _value(folder: str) -> tuple[str, str | None]:
    name, _, value = folder.partition("=")
    return name, None if value == "__HIVE_DEFAULT_PARTITION__" else urllib.parse.unquote(value)


def own_columns(names: Sequence[str]) -> list[str]:
    """:return: the columns, without an index written by pandas or R."""
    return [name for name in names if not _INDEX.fullmatch(str(name))]


def with_nearest(lost: Sequence[str], names: Sequence[str]) -> str:
    """:return: the missing names with close matches, and the existing names, in a string."""
    there = {str(name).lower(): name for name in names}
    shown = list[str]()
    for name in lost:
        near = difflib.get_close_matches(str(name).lower(), there, 1)
        shown.append(f"{name!r} (perhaps {there[near[0]]!r})" if near else repr(name))
    return f"{_first(shown)}; it has {listed(own_columns(names), 40)}"


def listed(names: Iterable[str], most: int = 8) -> str:
    """:return: the names, joined, or the first of many; names with commas are quoted."""
    return _first([repr(name) if "," in str(name) else str(name) for name in names], most)


def short(value: Any) -> str:
    """:return: the `repr` of a value; a long one has dots in the middle."""
    return _SHORT.repr(value)


def shortened(values: Iterable[Any], most: int = 8) -> str:
    """:return: the values or names, joined, or the first of many, see `short`."""
    return _first([short(value) for value in values], most)


def _first(texts: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(texts[:most])
    return shown if len(texts) <= most else f"{shown}, ... ({len(texts)} in all)"
