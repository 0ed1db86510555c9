"""Classification data by name or from a CSV file, checked, in the order of the source.

A name is looked up among the bundled sets, then in the directory that the environment variable
GPFLOW_BSVM_DATA names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gpflow.base import AnyNDArray
from sklearn import datasets

from .data.readers import checked
from .estimators.survey import Rows
from .files import CSVFiles, ParquetFiles
from .files.files import Files
from .tables import CSV, PARQUET, about_counted, columns, counts_rows, listed, target_among

#: Need no network and no files.
BUNDLED = ("breast-cancer", "banana-like", "even-digits", "iris", "digits")

DATA_VARIABLE = "GPFLOW_BSVM_DATA"
_FOLDERS = ("", "binary", "multiclass")
_SUFFIXES = (".csv", ".csv.gz")
#: Rows that are read at a time.
_ROWS = 2**17


@dataclass(frozen=True)
class Dataset:
    """
    :ivar name: for tables and file names.
    :ivar X: [N, D], float64, finite, as in the source: not scaled, not shuffled.
    :ivar y: [N], the labels of the source.
    :ivar feature_names: D names.
    :ivar notes: changes to the columns of the source.
    """

    name: str
    X: AnyNDArray
    y: AnyNDArray
    feature_names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def load(name_or_path: str, target: str | None = None, numbers: bool = False) -> Dataset:
    """
    :param name_or_path: one of `BUNDLED`; a Parquet file; a CSV file with a header, separated by
        commas, semicolons, tabs or bars; the name of a file `<name>.csv` or `<name>.csv.gz` in the
        data directory or its folders `binary` and `multiclass` ("heart", "binary/heart"). Files are
        read as by `gpflow_bsvm.files`; the data set's `notes` say what became of columns.
    :param target: label column, for CSV files given by path; None: "y", "target", "class" or
        "label", whichever is there.
    :param numbers: whether labels are numbers rather than classes.
    :raise ValueError: if there is no such set, or it cannot be used.
    """
    if name_or_path in (*BUNDLED, "diabetes"):
        return _bundled(name_or_path)
    if name_or_path.endswith((".json", ".jsonl", ".xlsx", ".xls", ".arff", ".feather")):
        raise ValueError(f"{name_or_path} is neither CSV nor Parquet: save it as one of these")
    if name_or_path.endswith(CSV + PARQUET) or Path(name_or_path).is_file():
        return _read(name_or_path, target, numbers)
    directory = os.environ.get(DATA_VARIABLE)
    for path in _candidates(directory, name_or_path) if directory else ():
        if path.is_file():
            return _read(str(path), None, numbers)
    raise ValueError(
        f"no data set {name_or_path!r}: it is not bundled ({', '.join(BUNDLED)}), no file, and "
        f"there is no {name_or_path}.csv or {name_or_path}.csv.gz in the directory {DATA_VARIABLE} "
        f"({directory or 'which is not set'}) or its folders binary and multiclass"
    )


def _bundled(name: str) -> Dataset:
    if name == "banana-like":
        X, y = datasets.make_moons(n_samples=1000, noise=0.33, random_state=0)  # some 10 % overlap
        return Dataset(name, X, y, ("x1", "x2"))
    bunch = getattr(datasets, f"load_{name.removeprefix('even-').replace('-', '_')}")()
    y = (bunch.target % 2 == 0).astype(int) if name == "even-digits" else bunch.target
    names = tuple(str(feature) for feature in bunch.feature_names)
    return Dataset(name, np.asarray(bunch.data, np.float64), y, names)


def _candidates(directory: str, name: str) -> list[Path]:
    folders = [Path(directory).expanduser() / folder for folder in _FOLDERS]
    return [folder / (name + suffix) for folder in folders for suffix in _SUFFIXES]


def _read(path: str, target: str | None, numbers: bool) -> Dataset:
    target = target_among(path, columns(path), target)
    kind = ParquetFiles if path.endswith(PARQUET) else CSVFiles
    rows = kind(path, target, words=True, classes=None if numbers else "auto")
    X, Y, _ = map(np.concatenate, zip(*(checked(piece, Rows()) for piece in rows.pieces(_ROWS))))
    y = Y[:, 0] if rows.classes is None else np.array(rows.classes)[Y[:, 0].astype(int)]
    name = re.sub(r"\.csv(\.gz|\.bz2|\.zst)?$|\.parquet$|\.pq$", "", Path(path).name)
    return Dataset(name, X, y, rows.features, tuple(_notes(rows, X)))


def _notes(rows: Files, X: AnyNDArray) -> Iterator[str]:
    yield from (f"column {name!r} dropped: it has no name" for name in rows.left_out)
    for column in sorted(rows.columns.texts):
        own = [name for name in rows.features if name.startswith(f"{column}=")]
        yield f"column {column!r} of words is read as {listed(own)}"
    counted = (name for name, values in zip(rows.features, X.T) if counts_rows(values))
    yield from map(about_counted, counted)
