"""Classification data by name or from a CSV file, checked, in the order of the source.

A name is looked up among the bundled sets, then in the directory that the environment variable
GPFLOW_BSVM_DATA names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    make_moons,
)

from .optional import require
from .tables import (
    CSV,
    MOST_WORDS,
    PARQUET,
    DataError,
    about_counted,
    counts_rows,
    listed,
    own_columns,
    read_table,
    readable,
    target_among,
)

#: Need no network and no files.
BUNDLED = ("breast-cancer", "banana-like", "iris", "digits")

DATA_VARIABLE = "GPFLOW_BSVM_DATA"
_FOLDERS = ("", "binary", "multiclass")
_SUFFIXES = (".csv", ".csv.gz")


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


def load(name_or_path: str, target: str | None = None) -> Dataset:
    """
    :param name_or_path: one of `BUNDLED`; a Parquet file; a CSV file with a header, separated by
        commas, semicolons, tabs or bars; the name of a file `<name>.csv` or `<name>.csv.gz` in the
        data directory or its folders `binary` and `multiclass` ("heart", "binary/heart"). A column
        without a name (the index, as pandas writes it) is dropped, and a column of words becomes
        one of zeros and ones for each word; the data set's `notes` say so.
    :param target: label column, for CSV files given by path; None: "y", "target", "class" or
        "label", whichever is there.
    :raise DataError: if there is no such set, or it cannot be used.
    """
    if name_or_path in (*BUNDLED, "diabetes"):
        return _bundled(name_or_path)
    if name_or_path.endswith((".json", ".jsonl", ".xlsx", ".xls", ".arff", ".feather")):
        raise DataError(f"{name_or_path} is neither CSV nor Parquet: save it as one of these")
    if name_or_path.endswith(CSV + PARQUET) or Path(name_or_path).is_file():
        return _read(Path(name_or_path), target)
    directory = os.environ.get(DATA_VARIABLE)
    for path in _candidates(directory, name_or_path) if directory else ():
        if path.is_file():
            return _read(path, None)
    raise DataError(
        f"no data set {name_or_path!r}: it is not bundled ({', '.join(BUNDLED)}), no file, and "
        f"there is no {name_or_path}.csv or {name_or_path}.csv.gz in the directory {DATA_VARIABLE} "
        f"({directory or 'which is not set'}) or its folders binary and multiclass"
    )


def load_numbers(name_or_path: str, target: str | None = None) -> Dataset:
    """
    As `load`, for numbers as labels.

    :param name_or_path: "diabetes", or as in `load`.
    :raise DataError: for labels that are not numbers.
    """
    data = load(name_or_path, target)
    try:
        return replace(data, y=np.asarray(data.y, np.float64))
    except ValueError as error:
        raise DataError(
            f"{data.name} has labels such as {data.y[0]!r}, and regression needs numbers: leave "
            "out --task regression, or give another --target"
        ) from error


def _bundled(name: str) -> Dataset:
    if name == "banana-like":
        X, y = make_moons(n_samples=1000, noise=0.33, random_state=0)  # some 10 % overlap
        return Dataset(name, X, y, ("x1", "x2"))
    loaders = {"breast-cancer": load_breast_cancer, "iris": load_iris, "digits": load_digits}
    bunch = (loaders | {"diabetes": load_diabetes})[name]()
    names = tuple(str(feature) for feature in bunch.feature_names)
    return Dataset(name, np.asarray(bunch.data, np.float64), bunch.target, names)


def _candidates(directory: str, name: str) -> list[Path]:
    folders = [Path(directory).expanduser() / folder for folder in _FOLDERS]
    return [folder / (name + suffix) for folder in folders for suffix in _SUFFIXES]


def _read(path: Path, target: str | None) -> Dataset:
    frame = _frame(path)
    own = own_columns(frame.columns)
    notes = [f"column {name!r} dropped: it has no name" for name in frame.columns.difference(own)]
    frame, column = frame[own], target_among(str(path), own, target)
    name = re.sub(r"\.csv(\.gz|\.bz2|\.zst)?$|\.parquet$|\.pq$", "", path.name)
    return _checked(name, frame.drop(columns=column), frame[column], str(path), notes)


def _frame(path: Path) -> Any:
    """:raise DataError: for a file that cannot be read, or whose rows do not fit its header."""
    with readable(str(path)):
        table = read_table(str(path))
    if table.num_rows == 0:
        raise DataError(f"{path} has no rows")
    names = table.column_names
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"{path} has more than one column {twice[0]!r}; rename or drop them")
    return table.to_pandas(ignore_metadata=True)


def _checked(
    name: str, features: Any, labels: Any, source: str, notes: Sequence[str] = ()
) -> Dataset:
    """Turn a frame of features and a series of labels into a `Dataset`, or say why not."""
    if features.shape[1] == 0:
        raise DataError(f"{source} has no feature columns beside {labels.name!r}")
    _refuse_missing(features.isna(), source, "missing values")
    _refuse_missing(labels.isna().to_frame(labels.name), source, "missing labels")
    numbers, encoded = _one_hot(features.astype(object), source)
    _refuse_missing(~np.isfinite(numbers), source, "infinity")
    y = labels.to_numpy()
    y = y.astype(str) if y.dtype.kind == "O" else y
    if len(np.unique(y)) < 2:
        raise DataError(f"{source} has one class only ({y[0]!s}) in column {labels.name!r}")
    names = tuple(str(column) for column in numbers.columns)
    return Dataset(name, numbers.to_numpy(), y, names, (*notes, *encoded))


def _one_hot(features: Any, source: str) -> tuple[Any, list[str]]:
    """:return: floats, with a column for each word of a column of words; notes on these columns."""
    pandas = require("pandas")
    numbers = features.apply(pandas.to_numeric, errors="coerce").astype(np.float64)
    words, most = numbers.isna(), max(2, min(MOST_WORDS, len(features) // 2))
    found = {name: sorted(set(features[name].map(str))) for name in features if words[name].any()}
    bad = [
        f"{name!r} (such as {str(features.loc[words[name], name].iloc[0])!r})"
        for name, values in found.items()
        if not words[name].all() or len(values) > most
    ]
    if bad:
        raise DataError(
            f"{source} has columns that are not numeric: {listed(bad)}; encode or drop them "
            f"(a column of at most {most} different words, no numbers among them, is encoded here)"
        )
    for name, values in found.items():
        for value in values[len(values) < 3 :]:  # for two words one column is enough
            numbers[f"{name}={value}"] = (features[name].map(str) == value).astype(float)
    notes = [
        f"column {name!r} of {len(values)} words encoded"
        if len(values) > 1
        else f"column {name!r} dropped: it holds {values[0]!r} only"
        for name, values in found.items()
    ]
    counted = [name for name in numbers if counts_rows(numbers[name].to_numpy())]
    notes += [about_counted(str(name)) for name in counted]
    return numbers.drop(columns=list(found)), notes


def _refuse_missing(missing: Any, source: str, what: str) -> None:
    counts = missing.sum()
    bad = [f"{name!r} ({n} of {len(missing)} rows)" for name, n in counts[counts > 0].items()]
    if bad:
        raise DataError(f"{source} has {what} in {listed(bad)}; drop or impute them")
