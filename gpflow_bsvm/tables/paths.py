"""Where tables are, and the names of their columns."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from typing import Any

CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst", ".tsv", ".tsv.gz", ".txt", ".data")
PARQUET = (".parquet", ".pq")
ARFF = (".arff",)
SVMLIGHT = (".svm", ".svmlight", ".libsvm")
ENDINGS = CSV + PARQUET + ARFF + SVMLIGHT
#: Files that hold tables, and that a spreadsheet or pandas saves as CSV or Parquet.
OTHERS = (".json", ".jsonl", ".xlsx", ".xls", ".ods", ".feather", ".rds", ".sav", ".zip")
#: Names of a column of labels where the user gives none.
TARGETS = ("y", "target", "class", "label")
#: In fewer rows than this numbers may rise by 1 from row to row by chance.
_FEWEST_COUNTED = 10
#: The name here of R's first column, for which its header has none.
ROW_NAMES = "row.names"
#: Names that pandas gives its index, which is the order of rows and no feature.
_INDEX = re.compile(rf"|Unnamed: [\d.]+|__index_level_\d+__|{ROW_NAMES}")


def find_files(path: Any, endings: tuple[str, ...]) -> list[str]:
    """
    :param path: of a file, of a directory, or of several files.
    :return: files; those of a directory in the order of their names.
    :raise FileNotFoundError: if there is no such file.
    :raise ValueError: for a pipe or a device, which can be read only once.
    """
    if not isinstance(path, (str, os.PathLike)):
        return [found for one in path for found in find_files(one, endings)]
    name = os.fspath(path)
    if not os.path.exists(name):
        raise FileNotFoundError(f"there is no file {name}")
    if os.path.isfile(name):
        return [name]
    if not os.path.isdir(name):
        raise ValueError(f"{name} is a pipe or a device, and rows are read more than once: save it")
    inside = glob.iglob(os.path.join(glob.escape(name), "**", "*"), recursive=True)
    found = sorted(one for one in inside if one.lower().endswith(endings) and os.path.isfile(one))
    if not found:
        raise FileNotFoundError(f"directory {name} has no files *{', *'.join(endings)}")
    return found


def own_columns(names: Sequence[str]) -> list[str]:
    """:return: the columns, without the index that pandas or R writes beside them."""
    return [name for name in names if not _INDEX.fullmatch(str(name))]


def target_among(path: str, names: Sequence[str], target: str | None) -> str:
    """
    :return: the column of labels: `target`, or that of `TARGETS` which is there.
    :raise ValueError: if there is none, or several.
    """
    if target in names:
        return str(target)
    hint = _about_header(names)
    if target is not None:
        case = [name for name in names if name.lower() == target.lower()]
        also = f" (the names differ only in case: {case[0]})" if case else ""
        has = listed(own_columns(names), 40)
        raise ValueError(f"{path} has no column {target!r}; it has {has}{also}{hint}")
    found = [name for name in names if name.lower() in TARGETS]
    if len(found) == 1:
        return found[0]
    raise ValueError(
        f"which column of {path} holds the labels? Name it with target (--target COL); "
        f"there is {'more than one' if found else 'none'} of {', '.join(TARGETS)} among "
        f"{listed(names, 40)}{hint}"
    )


def about_counted(names: Sequence[str], X: Any) -> list[str]:
    """:return: a note on each column of X that rises by 1 from row to row, as row numbers do."""
    rising = (X[1:] - X[:-1] == 1).all(axis=0) & (len(X) >= _FEWEST_COUNTED)
    return [
        f"column {name!r} rises by 1 from row to row: is it a row number? Then leave it out by "
        f"drop=[{name!r}]"
        for name, counts in zip(names, rising)
        if counts
    ]


def _about_header(names: Sequence[str]) -> str:
    """:return: a hint where the first line of a file seems to be no header."""
    if names and names[0].startswith(("#", "%")):
        return "; remove the lines before the header"
    is_row = any(map(is_number, names))
    return "; if that is a row, give names=[...], those of all columns" if is_row else ""


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
