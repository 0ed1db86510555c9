"""Preparation of a user's rows: weights, classes, scaled columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
import scipy.sparse
from gpflow.base import AnyNDArray
from sklearn import config_context
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_array, validate_data

from ..data.batch import SparseRows
from ..data.checks import check_weights, has_masked, warn_of_digits
from ..data.readers import names_of
from ..model_selection.held_out import in_parts
from ..notices import warn
from ..tables.paths import listed
from .columns import shift_and_scale, unscaled_columns
from .labels import Encoding, missing
from .specification import Data

#: A smaller sum of weights is probably a mistake.
LITTLE_WEIGHT = 10
#: A row determines scales and noise alone if it outweighs all others together by this factor.
LONE_WEIGHT = 100
#: Quantiles of a column. The outer two should span a part of its standard deviation, unless more
#: than a few values are several spans away (pixels at the edge of an image).
MIDDLE = (0.05, 0.5, 0.95)
LEAST_SPAN = 0.1
FAR_SPANS = 10
FEW = 0.01
#: With fewer different floats between its smallest and its largest value, a column is rounded.
FEWEST_STEPS = 1000
#: Beginnings of the names of types of dates and times.
_TIMES = ("date", "time", "duration", "period")
#: With more rows than this, equal rows are not merged.
MERGE_ROWS = 20_000


def _as_sklearn_reads(X: Any, fitted: Any = ()) -> Any:
    """
    :return: X, with NaN in place of masked values, and of pandas.NA in object columns; and with
        strings for column names such as (2020, "May"), because scikit-learn compares only strings
        with those `fitted` (see `names_of`).
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
    X = getattr(X, "to_native", lambda: X)()  # of Narwhals
    X = X.to_pandas() if type(X).__name__ == "RecordBatch" else X  # scikit-learn sees no names
    kinds: Any = getattr(X, "dtypes", getattr(X, "dtype", None))
    kinds = getattr(getattr(X, "schema", None), "types", kinds)  # of a table of PyArrow
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
    :param least_sum: weights with a smaller sum are no shares.
    :return: [N, 1], weights as numbers of repetitions. Weights with a sum of at most 1 are shares
        (AdaBoost), or shares of a part of the rows (a fold): rows of positive weight get mean 1.
    """
    weight = check_weights(sample_weight, num_rows)
    total = weight.sum()
    is_share = least_sum <= total <= 1 + 1e-6
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
    :return: [2, D], the replacements for missing values (the most frequent code in the kernel's
        columns of codes), and 1 for columns that need an indicator column.
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


def weighted_quantiles(y: AnyNDArray, weight: AnyNDArray, levels: Any) -> AnyNDArray:
    """:return: [T], quantiles, each of which occurs in y."""
    order = np.argsort(y)
    total = np.cumsum(weight[order])
    wanted = np.multiply(levels, total[-1]) * (1 - 1e-12)  # rounding must not add a row
    return np.asarray(y[order][np.searchsorted(total, wanted)])


def symmetric_quantiles(y: AnyNDArray, weight: AnyNDArray, levels: Sequence[float]) -> AnyNDArray:
    """:return: [T], quantiles; the mean of two values of y if the quantile is between them."""
    above = -weighted_quantiles(-y, weight, 1 - np.asarray(levels))
    return np.asarray((weighted_quantiles(y, weight, levels) + above) / 2)


def make_scaler(X: Any, weight: AnyNDArray) -> StandardScaler:
    """:raise ValueError: if a column overflows, or varies so little that its variance is 0."""
    with np.errstate(all="ignore"):  # an overflow is an error below, not a warning
        scaler = StandardScaler(with_mean=not scipy.sparse.issparse(X)).fit(X, sample_weight=weight)
    refuse_overflow(scaler.var_[:, None], "column {} of X is so large that its variance")
    if not scipy.sparse.issparse(X):
        spread = np.ptp(X, axis=0)
        warn_of_offsets(X)
        tiny = (spread > 0) & (spread < np.sqrt(np.finfo(X.dtype).tiny))
        lost = np.flatnonzero(tiny & (scaler.var_ < np.finfo(scaler.var_.dtype).tiny))
        if len(lost):
            raise ValueError(
                f"column {lost[0]} of X is so small that its variance underflows: check the units"
            )
    return scaler


def scale_two_values(scaler: StandardScaler, X: Any) -> None:
    """
    Let `scaler` put the two values of a column (of a sparse column, 0 and another) 2 apart, as if
    both were equally frequent. In its own deviations, a rare code is far from all other rows.

    :param X: [N, D], an array or SciPy's CSR.
    """
    if scipy.sparse.issparse(X):
        low, high = (end.toarray().reshape(-1) for end in (X.min(axis=0), X.max(axis=0)))
        others = X.indices[(X.data != 0) & (X.data != (low + high)[X.indices])]
        two = np.bincount(others, minlength=X.shape[1]) == 0
    else:
        low, high = X.min(axis=0), X.max(axis=0)
        two = ((low == X) | (high == X)).all(axis=0)
    two &= low < high
    scaler.scale_[two] = (high[two] - low[two]) / 2


def warn_of_offsets(X: AnyNDArray, name: str = "X") -> None:
    """Warn of columns so far from 0 that their float type rounds most of their variation away."""
    spread = np.ptp(X, axis=0)
    largest = np.abs(X).max(axis=0)
    eps = np.finfo(X.dtype).eps
    few = (spread < FEWEST_STEPS * eps * largest) & ((spread > 0) | (largest > 1 / eps))
    if len(columns := np.flatnonzero(few)):
        where = f" in column {listed(columns)}" if name == "X" else ""
        warn(
            f"{name} is so far from 0{where} that {X.dtype.name} has fewer than {FEWEST_STEPS} "
            "values between its smallest and its largest: subtract a constant"
        )


def warn_of_extremes(scaler: StandardScaler | None, X: Any, names: Any = None) -> None:
    """Warn if a few values determine a column's deviation, which scales the rest to a point."""
    if scaler is None or scipy.sparse.issparse(X):
        return
    low, middle, high = np.quantile(X, MIDDLE, axis=0)
    span = high - low
    narrow = np.flatnonzero((span > 0) & (span < LEAST_SPAN * scaler.scale_))
    far = np.abs(X[:, narrow] - middle[narrow]) > FAR_SPANS * span[narrow]
    few = (far.mean(axis=0) < FEW) | (far.sum(axis=0) == 1)
    if not len(columns := narrow[few]):
        return
    names = range(X.shape[1]) if names is None else names
    told = listed(names[column] for column in columns)
    first = columns[0]
    extreme = X[np.argmax(np.abs(X[:, first] - middle[first])), first]
    warn(
        f"a few values determine the scale of column {told} of X, such as {extreme:.4g}, "
        f"while 90 % of the column span {span[first]:.2g}: correct them, or give logarithms or "
        "ranks (sklearn.preprocessing.QuantileTransformer)"
    )


def scale(scaler: StandardScaler | None, X: Any) -> Any:
    """
    :return: X as the model's input.
    :raise ValueError: if a row overflows, or if X is sparse, but was dense in the fit.
    """
    if scipy.sparse.issparse(X):
        if scaler is not None and scaler.with_mean:
            raise ValueError("X is sparse, but was dense in the fit: give X.toarray()")
        with config_context(transform_output="default"):  # a data frame cannot be sparse
            return SparseRows(X if scaler is None else scaler.transform(X))
    shift, factor = shift_and_scale(scaler, X.shape[1])
    with np.errstate(all="ignore"):
        X = X - shift  # `scaler.transform` would check X again, which takes long
        X /= factor
    refuse_overflow(X)
    return np.asarray(X, dtype=gpflow.config.default_float())


def refuse_overflow(values: AnyNDArray, what: str = "row {} of X is so large that f") -> None:
    """:raise ValueError: if a row is not finite."""
    overflown = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(overflown):
        raise ValueError(f"{what.format(overflown[0])} overflows: check the units")


def merge_equal(data: Data, copies: AnyNDArray) -> Data:
    """
    :param data: X [N, D], an array or SciPy's CSR; Y [N, 1]; weights [N].
    :param copies: [N], how often each row occurs.
    :return: rows in a sorted order; equal rows are merged, except for `held_out.in_parts`. Rounding
        then does not depend on order or repetition. Too many rows are unchanged.
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
