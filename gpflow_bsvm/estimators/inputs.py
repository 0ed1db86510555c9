"""Preparation of a user's rows: weights, classes, missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from gpflow.base import AnyNDArray
from sklearn.utils.validation import check_array, validate_data

from ..data.checks import check_weights, has_masked, warn_of_digits
from ..data.readers import names_of
from ..model_selection.held_out import in_parts
from ..notices import warn
from .columns import unscaled_columns
from .labels import Encoding, missing
from .scaling import symmetric_quantiles
from .specification import Data

#: A smaller sum of weights is probably a mistake.
LITTLE_WEIGHT = 10
#: A row alone determines scales and noise if its weight is this many times the sum of all others.
LONE_WEIGHT = 100
#: Beginnings of the names of types of dates and times.
_TIMES = ("date", "time", "duration", "period")
#: With more rows than this, equal rows are not merged.
MERGE_ROWS = 20_000


def _as_sklearn_reads(X: Any, fitted: Any = ()) -> Any:
    """
    :return: X, where NaN replaces masked values (and pandas.NA in object columns), and strings
        replace column names such as (2020, "May"): scikit-learn compares names with the names
        `fitted` only if they are strings (see `names_of`).
    """
    if not hasattr(X, "iloc") or X.ndim != 2:
        objects = isinstance(X, np.ndarray) and X.dtype.kind == "O"
        return np.where(missing(X), np.nan, X) if objects or has_masked(X) else X
    names = names_of([*X.columns], fitted)
    if "object" in map(str, X.dtypes):
        X = type(X)(_as_sklearn_reads(np.asarray(X, object)), X.index, X.columns)
    if names is None or any(isinstance(name, str) for name in X.columns):
        return X
    return X.set_axis([*names], axis=1)


def validated(estimator: Any, X: Any, y: Any = "no_validation", **how: Any) -> Any:
    """
    :return: the result of `validate_data`; its errors about NaN, infinity and words get advice.
    :raise ValueError: also for dates and periods, because their unit as numbers is arbitrary.
    """
    X = getattr(X, "to_native", lambda: X)()  # a frame of Narwhals
    X = X.to_pandas() if type(X).__name__ == "RecordBatch" else X  # scikit-learn ignores its names
    kinds: Any = getattr(X, "dtypes", getattr(X, "dtype", None))
    kinds = getattr(getattr(X, "schema", None), "types", kinds)  # a PyArrow table
    if any(str(kind).lower().startswith(_TIMES) for kind in np.atleast_1d(kinds)):
        raise ValueError(
            "X must hold numbers, got dates or times: convert them, for instance to days by "
            "(dates - numpy.datetime64('1970')) / numpy.timedelta64(1, 'D')"
        )
    X = _as_sklearn_reads(X, () if how["reset"] else getattr(estimator, "feature_names_in_", None))
    try:
        warn_of_digits(X, estimator._how["dtype"])
        return validate_data(estimator, X, y, **how, **estimator._how)
    except (ValueError, TypeError) as error:
        first = str(error).partition("\n")[0]
        if first == "Input X contains NaN.":
            advice = "Fit dense rows with impute=True, or drop or impute such rows first."
        elif first.startswith("Input X contains infinity") and not scipy.sparse.issparse(X):
            values = check_array(X, dtype=estimator._how["dtype"], ensure_all_finite=False)
            row, column = np.argwhere(np.isinf(values))[0]
            advice = f"Correct row {row}, column {column}, or drop the row."
        elif "Cannot cast array" in first or first.endswith((f"'{type(X).__name__}'", "'dict'")):
            advice = "in X: give records as pandas.DataFrame(X)."
        elif first.startswith(("could not convert string to float", "float() argument must be")):
            advice = "in X: encode words as numbers, as with OneHotEncoder; dates as days."
        elif first.startswith("setting an array element with a sequence"):
            advice = "X must be a matrix: give (X, y) as fit(X, y), and blocks as data.Blocks(X)."
        else:
            raise
        raise type(error)(f"{first} {advice}") from None


def repetitions(sample_weight: Any, num_rows: int, least_sum: float = 0.0) -> AnyNDArray:
    """
    :param least_sum: weights count as shares only if their sum is above this.
    :return: [N, 1], weights as numbers of repetitions. Weights with a sum of at most 1 are shares,
        as in AdaBoost (below 1 in a fold): positive weights are scaled to mean 1.
    """
    weight = check_weights(sample_weight, num_rows)
    total = weight.sum()
    is_share = least_sum < total <= 1 + 1e-6
    return weight / total * np.count_nonzero(weight) if is_share else weight


def counted(
    X: Any, Y: AnyNDArray, weight: AnyNDArray, encoding: Encoding
) -> tuple[Data, AnyNDArray]:
    """
    :param Y: [N, 1], labels; weight: [N, 1].
    :return: the rows of positive weight, with encoded labels; and how often each occurs: its weight
        if all weights are whole numbers, else once.
    """
    Y, factors = encoding(Y)
    total = (weight * factors)[:, 0].astype(X.dtype)
    check_weighs(total)
    # A slice does not copy X.
    used = slice(None) if total.all() else total > 0
    whole = (weight == np.floor(weight)).all()
    copies = (weight if whole else np.ones_like(weight))[used, 0]
    return (X[used], Y[used].astype(X.dtype), total[used]), copies


def check_weighs(weight: AnyNDArray) -> None:
    """:raise ValueError: if no weight is positive."""
    if not (weight > 0).any():
        raise ValueError(
            "all weights are 0 (sample_weight, times class_weight if given): no row would count"
        )


def warn_of_weights(weight: AnyNDArray) -> None:
    """Warn of a small sum of weights, and of a row that outweighs all others."""
    largest = weight.max()
    others = weight.sum() - largest
    if len(weight) > 1 and largest > LONE_WEIGHT * others:
        warn(
            f"one row has the weight {largest:.3g}, and all others together have {others:.3g}: a "
            "weight is a number of repetitions, so this row alone determines scales and noise"
        )
    if weight.sum() < min(LITTLE_WEIGHT, len(weight)):
        warn(
            f"the weights of {len(weight)} rows sum to {weight.sum():.3g}: a weight is a number of "
            "repetitions, so the fit stays close to its prior; divide the weights by their mean"
        )


def medians(X: AnyNDArray, weight: AnyNDArray, kernel: Any) -> AnyNDArray:
    """
    :return: [2, D]: replacements for missing values (medians; in the kernel's columns of codes, the
        most frequent code), then 1 for columns that need an indicator column.
    """
    missing = np.isnan(X)
    fill = np.stack([np.zeros(X.shape[1]), missing.any(axis=0)])  # 0 if no value is known
    for c in np.flatnonzero(~missing.all(axis=0)):
        there = ~missing[:, c]
        fill[0, c] = symmetric_quantiles(X[there, c], weight[there], (0.5,))[0]
    codes = [c for c in unscaled_columns(kernel, filled(X, fill), fill) if c < X.shape[1]]
    for code in codes:
        values, place = np.unique(X[:, code], return_inverse=True)  # NaN comes last
        often = np.bincount(place, np.where(missing[:, code], 0.0, weight))
        fill[0, code] = np.nan_to_num(values[np.argmax(often)])
    return fill


def filled(X: Any, fill: AnyNDArray | None) -> Any:
    """:return: X with NaN replaced by `medians`, and the indicator columns appended."""
    if fill is None:
        return X
    missing = np.isnan(X)
    marks = missing[:, fill[1] > 0].astype(X.dtype)
    return np.concatenate([np.where(missing, fill[0], X), marks], axis=1)


def merge_equal(data: Data, copies: AnyNDArray) -> Data:
    """
    :param data: X [N, D], an array or SciPy's CSR; Y [N, 1]; weights [N].
    :param copies: [N], how often each row occurs.
    :return: the sorted rows; equal rows are merged, or become a few parts (`held_out.in_parts`).
        Rounding then does not depend on order or repetition. Over `MERGE_ROWS` rows are unchanged.
    """
    X, Y, weight = data
    if X.shape[0] > MERGE_ROWS:
        return data
    is_sparse = scipy.sparse.issparse(X)
    keys = _sparse_keys(X, Y[:, 0]) if is_sparse else np.column_stack([X, Y])
    axis = None if is_sparse else 0
    _, first, member = np.unique(keys, return_index=True, return_inverse=True, axis=axis)
    sums, counts = (np.bincount(member.reshape(-1), part) for part in (weight, copies))
    rows, share = in_parts(None if is_sparse else X[first], Y[first], counts)
    first = first[rows]
    return X[first], Y[first], (sums[rows] * share).astype(weight.dtype)


def _sparse_keys(X: Any, y: AnyNDArray) -> AnyNDArray:
    """:return: [N], keys; rows with equal features and labels have equal keys."""
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    ends = zip(X.indptr[:-1], X.indptr[1:])
    keys: AnyNDArray = np.empty(X.shape[0], dtype=object)
    keys[:] = [(X.indices[a:b].tobytes(), X.data[a:b].tobytes(), c) for (a, b), c in zip(ends, y)]
    return keys
