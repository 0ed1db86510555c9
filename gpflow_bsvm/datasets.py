"""Checked data sets, loaded by name or from a file; rows keep the source's order.

Names are looked up among the bundled sets, then in the directory that the environment variable
GPFLOW_BSVM_DATA names.
"""

from __future__ import annotations

from . import quiet  # isort: skip  # noqa: F401 - imports GPflow before others do

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gpflow.base import AnyNDArray
from sklearn import datasets

from .data.readers import checked
from .estimators.labels import check_known, label_names
from .estimators.large import Rows
from .files import ROWS, Files, Reading
from .tables.paths import ENDINGS, OTHERS, find_files
from .tables.reading import Options
from .tables.table import Table

if TYPE_CHECKING:  # no dependency of this package
    from typing_extensions import Unpack

#: Available offline; the labels of "diabetes" are numbers.
BUNDLED = ("breast-cancer", "banana-like", "even-digits", "iris", "digits", "diabetes")

DATA_VARIABLE = "GPFLOW_BSVM_DATA"
_FOLDERS = ("", "binary", "multiclass")
_SUFFIXES = (".csv", ".csv.gz")


@dataclass(frozen=True)
class Dataset:
    """
    :ivar name: name for tables and files.
    :ivar X: [N, D], float64, as in the source, not scaled or shuffled; missing values are NaN.
    :ivar y: [N], the labels of the source.
    :ivar feature_names: the D names of the columns.
    :ivar notes: how the source's columns were converted.
    :ivar order: the labels in order, if the user or their type gives one.
    """

    name: str
    X: AnyNDArray
    y: AnyNDArray
    feature_names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    order: tuple[Any, ...] = ()


def load(
    name_or_path: str,
    target: str | None = None,
    numbers: bool = False,
    impute: bool = False,
    **options: Unpack[Options],
) -> Dataset:
    """
    :param name_or_path: a name in `BUNDLED`; a CSV, Parquet, ARFF or svmlight file; or the name
        ("heart", "binary/heart") of a file `<name>.csv` or `<name>.csv.gz` in the data directory or
        its folders `binary` and `multiclass`. The result's `notes` describe conversions of columns.
    :param target: label column of a file given by path; None: the column named "y", "target",
        "class" or "label".
    :param numbers: whether labels are numbers rather than classes.
    :param impute: whether to allow missing values, which stay NaN; indicator columns mark them.
    :param options: options of `gpflow_bsvm.files.Reading` (a column of weights is left out).
    :raise FileNotFoundError: if the name ends like a file's, but there is no such file.
    :raise ValueError: if there is no other set of this name, or the set cannot be used.
    """
    if name_or_path in BUNDLED:
        return _bundled(name_or_path)
    if Path(name_or_path).exists() or name_or_path.lower().endswith(ENDINGS + OTHERS):
        return _read(name_or_path, target, numbers, impute, options)
    directory = os.environ.get(DATA_VARIABLE)
    folders = [Path(directory).expanduser() / folder for folder in _FOLDERS] if directory else []
    for path in (folder / (name_or_path + suffix) for folder in folders for suffix in _SUFFIXES):
        if path.is_file():
            return _read(str(path), None, numbers, impute, options)
    raise ValueError(
        f"no data set {name_or_path!r}: it is neither bundled ({', '.join(BUNDLED)}) nor a file, "
        f"and there is no {name_or_path}.csv or {name_or_path}.csv.gz in the directory "
        f"{DATA_VARIABLE} ({directory or 'which is not set'}) or its folders binary and multiclass"
    )


def _bundled(name: str) -> Dataset:
    if name == "banana-like":
        X, y = datasets.make_moons(n_samples=1000, noise=0.33, random_state=0)  # about 10 % overlap
        return Dataset(name, X, y, ("x1", "x2"))
    bunch = getattr(datasets, f"load_{name.removeprefix('even-').replace('-', '_')}")()
    y = (bunch.target % 2 == 0).astype(int) if name == "even-digits" else bunch.target
    names = tuple(str(feature) for feature in bunch.feature_names)
    return Dataset(name, np.asarray(bunch.data, np.float64), y, names)


def _read(path: str, target: str | None, numbers: bool, impute: bool, options: Options) -> Dataset:
    how: Any = {"words": True, "classes": None if numbers else "auto"} | options
    rows = Files(Table(find_files(path), Reading(target, **how), labelled=True))
    pieces = [piece if impute else checked(piece, Rows()) for piece in rows.pieces(ROWS)]
    X, Y = (np.concatenate([piece[part] for piece in pieces]) for part in (0, 1))
    check_known(Y[:, 0])
    y = Y[:, 0] if rows.classes is None else label_names(rows, Y[:, 0])
    name = re.sub(rf"({'|'.join(map(re.escape, ENDINGS))})$", "", Path(path).name)
    notes = rows.table.notes(X)
    missing = np.isnan(X)
    some = missing.any(axis=0)
    notes += rows.columns.about_gaps(rows.columns.gaps(X), some)
    marks = [f"{rows.features[number]} missing" for number in np.flatnonzero(some)]
    X = np.concatenate([X, missing[:, some]], axis=1)
    order = tuple(rows.classes) if rows.classes and rows.classes_in_order else ()
    return Dataset(name, X, y, (*rows.features, *marks), tuple(notes), order)
