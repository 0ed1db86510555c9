"""Classification data by name or from a CSV file, checked, in the order of the source.

A name is looked up among the bundled sets, then in a data directory (the environment variable
GPFLOW_BSVM_DATA, else `gpflow_bsvm` in the user's cache directory), then on OpenML.
"""

from __future__ import annotations

import http.client
import os
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from sklearn.datasets import fetch_openml, load_breast_cancer, load_digits, make_moons

from .optional import require

#: Need no network and no files.
BUNDLED = ("breast-cancer", "banana-like", "digits")

#: Names of the benchmark literature and where OpenML has the set: name and version.
OPENML = {
    "banana": ("banana", 1),
    "diabetis": ("diabetes", 1),
    "eeg_eye_state": ("eeg-eye-state", 1),
    "electricity": ("electricity", 1),
    "german": ("credit-g", 1),
    "heart": ("heart-statlog", 1),
    "letter": ("letter", 1),
    "magic": ("MagicTelescope", 1),
    "optdigits": ("optdigits", 1),
    "pendigits": ("pendigits", 1),
    "phoneme": ("phoneme", 1),
    "ringnorm": ("ringnorm", 1),
    "satimage": ("satimage", 1),
    "segment": ("segment", 1),
    "sonar": ("sonar", 1),
    "spambase": ("spambase", 1),
    "twonorm": ("twonorm", 1),
    "vehicle": ("vehicle", 1),
}

DATA_VARIABLE = "GPFLOW_BSVM_DATA"
_UNREADABLE = (OSError, EOFError, UnicodeDecodeError, zlib.error)
_FOLDERS = ("", "binary", "multiclass")
_SUFFIXES = (".csv", ".csv.gz")
_TARGETS = ("y", "target", "class")


class DataError(ValueError):
    """Data that cannot be used; the message says what was expected and what was found."""


@dataclass(frozen=True)
class Dataset:
    """
    :ivar name: for tables and file names.
    :ivar X: [N, D], float64, finite, as the source has it: not scaled, not shuffled.
    :ivar y: [N], the labels of the source.
    :ivar feature_names: D names.
    """

    name: str
    X: AnyNDArray
    y: AnyNDArray
    feature_names: tuple[str, ...]


def load(name_or_path: str, target: str | None = None) -> Dataset:
    """
    :param name_or_path: one of `BUNDLED`; a CSV file with a header; the name of a file
        `<name>.csv` or `<name>.csv.gz` in the data directory or its folders `binary` and
        `multiclass` ("heart", "binary/heart"); or a name of `OPENML`.
    :param target: label column, for CSV files given by path; None: "y", "target" or "class",
        whichever is there.
    :raise DataError: if there is no such set, or it cannot be used.
    """
    if name_or_path in BUNDLED:
        return _bundled(name_or_path)
    if name_or_path.endswith(_SUFFIXES) or Path(name_or_path).is_file():
        return _read_csv(Path(name_or_path), target)
    found = [path for path in _candidates(name_or_path) if path.is_file()]
    if found:
        return _read_csv(found[0], None)
    if name_or_path in OPENML:
        return _from_openml(name_or_path)
    raise DataError(
        f"no data set {name_or_path!r}: it is not bundled ({', '.join(BUNDLED)}), no file, not on "
        f"the list of OpenML names ({', '.join(OPENML)}), and {_not_found(name_or_path)}"
    )


def _bundled(name: str) -> Dataset:
    if name == "banana-like":
        X, y = make_moons(n_samples=1000, noise=0.33, random_state=0)  # some 10 % overlap
        return Dataset(name, X, y, ("x1", "x2"))
    bunch = load_digits() if name == "digits" else load_breast_cancer()
    names = tuple(str(feature) for feature in bunch.feature_names)
    return Dataset(name, np.asarray(bunch.data, np.float64), bunch.target, names)


def _data_directory() -> Path:
    if os.environ.get(DATA_VARIABLE):
        return Path(os.environ[DATA_VARIABLE]).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "gpflow_bsvm"


def _candidates(name: str) -> list[Path]:
    directory = _data_directory()
    return [directory / folder / (name + suffix) for folder in _FOLDERS for suffix in _SUFFIXES]


def _not_found(name: str) -> str:
    """:return: where was looked, and how to look elsewhere."""
    directory = _data_directory()
    state = "has no such file" if directory.is_dir() else "does not exist"
    return (
        f"the data directory {directory} {state}; set {DATA_VARIABLE} to a directory that holds "
        f"{name}.csv or {name}.csv.gz, there or in its folders binary and multiclass"
    )


def _from_openml(name: str) -> Dataset:
    require("pandas")
    twin, version = OPENML[name]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one error below says it all
            bunch = fetch_openml(twin, version=version, as_frame=True, parser="auto", n_retries=1)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise DataError(
            f"OpenML did not deliver {name!r} (there {twin!r}: {error}), and {_not_found(name)}"
        ) from error
    frame = bunch.data.copy()
    for column in frame.columns[[dtype.name == "category" for dtype in frame.dtypes]]:
        codes = frame[column].cat.codes
        frame[column] = codes.where(codes >= 0).astype(float)  # -1 stands for a missing value
    return _checked(name, frame, bunch.target, f"OpenML's {twin!r}")


def _read_csv(path: Path, target: str | None) -> Dataset:
    pandas = require("pandas")
    try:
        frame = pandas.read_csv(path, low_memory=False)
    except pandas.errors.EmptyDataError:
        raise DataError(f"{path} is empty; expected a header line and rows") from None
    except _UNREADABLE + (pandas.errors.ParserError,) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise DataError(f"cannot read {path}: {reason}") from error
    if not isinstance(frame.index, pandas.RangeIndex):  # it takes surplus fields for an index
        raise DataError(f"{path} has rows with more fields than its header")
    if len(frame) == 0:
        raise DataError(f"{path} has a header but no rows")
    column = _target_column(path, [str(name) for name in frame.columns], target)
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    return _checked(name, frame.drop(columns=column), frame[column], str(path))


def _target_column(path: Path, columns: list[str], target: str | None) -> str:
    if target is not None and target not in columns:
        raise DataError(f"{path} has no column {target!r}; it has {_listed(columns)}")
    found = [target] if target is not None else [name for name in _TARGETS if name in columns]
    if len(found) == 1:
        return found[0]
    hint = ""
    if len(columns) == 1 and any(separator in columns[0] for separator in ";\t"):
        hint = "; columns must be separated by commas"
    elif all(_is_number(name) for name in columns):
        hint = "; is the header line missing?"
    raise DataError(
        f"which column of {path} holds the labels? Name it with target (--target COL); "
        f"there is {'more than one' if found else 'none'} of {', '.join(_TARGETS)} among "
        f"{_listed(columns)}{hint}"
    )


def _checked(name: str, features: Any, labels: Any, source: str) -> Dataset:
    """Turn a frame of features and a series of labels into a `Dataset`, or say why not."""
    if features.shape[1] == 0:
        raise DataError(f"{source} has no feature columns beside {labels.name!r}")
    pandas = require("pandas")
    numbers = features.apply(pandas.to_numeric, errors="coerce")
    words = features.notna() & numbers.isna()
    if words.any(axis=None):
        bad = [
            f"{column!r} (such as {str(features.loc[words[column], column].iloc[0])!r})"
            for column in features.columns[words.any()]
        ]
        raise DataError(
            f"{source} has columns that are not numeric: {_listed(bad)}; encode or drop them"
        )
    _refuse_missing(features.isna(), source, "missing values")
    _refuse_missing(labels.isna().to_frame(labels.name), source, "missing labels")
    X = numbers.to_numpy(np.float64)
    _refuse_missing(pandas.DataFrame(~np.isfinite(X), columns=features.columns), source, "infinity")
    y = labels.to_numpy()
    y = y.astype(str) if y.dtype.kind == "O" else y
    if len(np.unique(y)) < 2:
        raise DataError(f"{source} has one class only ({y[0]!s}) in column {labels.name!r}")
    return Dataset(name, X, y, tuple(str(column) for column in features.columns))


def _refuse_missing(missing: Any, source: str, what: str) -> None:
    counts = missing.sum()
    bad = [
        f"{column!r} ({count} of {len(missing)} rows)"
        for column, count in counts[counts > 0].items()
    ]
    if bad:
        raise DataError(f"{source} has {what} in {_listed(bad)}; drop or impute them")


def _listed(names: list[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
