"""Checks of rows. Errors state the expected and the found value, a remedy, and the row."""

from __future__ import annotations

import contextlib
from numbers import Integral
from typing import Any

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from ..likelihoods.labels import as_column, check_labels, label_numbers
from ..notices import warn
from .batch import Origin, SparseRows

#: The origin of a complete data set.
_WHOLE = Origin()
#: The largest weight. Beside a larger weight, float64 would lose the sums of other rows.
MOST_WEIGHT = 1e15


def as_array(values: Any, name: str) -> AnyNDArray:
    """
    :return: an array; if its dtype is object and NumPy can convert all values (also strings such as
        "1.5"), it becomes GPflow's default float.
    :raise TypeError: see `refuse_lazy`.
    :raise ValueError: for parts of different shapes, or masked values.
    """
    refuse_masked(values, name)
    refuse_lazy(**{name: values})
    try:
        array: AnyNDArray = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} must have shape [N, .], but its rows differ in length or shape"
        ) from error
    if array.dtype.kind == "O":
        with contextlib.suppress(TypeError, ValueError):  # later checks report words
            array = array.astype(gpflow.config.default_float())
    return array


def as_matrix(values: Any, name: str, origin: Origin = _WHOLE) -> Any:
    """
    :return: `values` as a finite two-dimensional array, or as `SparseRows`.
    :raise ValueError: as `as_array`; for another shape, no rows, NaN, infinity, or words not in Y.
    """
    values = SparseRows(values) if scipy.sparse.issparse(values) else values
    array = values if isinstance(values, SparseRows) else as_array(values, name)
    if array.ndim != 2:
        shape = "[:, None]" if array.ndim == 1 else f".reshape(len({name}), -1)"
        hint = f"; use {name}{shape}" if array.ndim else ""
        raise ValueError(f"{name} must have shape [N, .], got shape {array.shape}{hint}")
    if len(array) == 0:
        raise ValueError(f"{name} has no rows; at least one is needed")
    if name != "Y":  # the likelihood reports words in Y
        check_kind(array.dtype, name)
    stored = array.values if isinstance(array, SparseRows) else array
    if array.dtype.kind == "f" and not np.isfinite(stored).all():
        what = "NaN or infinity"
        remedy = "drop or impute such rows first"
        if stored is array:
            row, column = np.argwhere(~np.isfinite(array))[0]
            where = origin.column(column) if name == "X" else f"column {column}"
            what = f"{array[row, column]} ({origin.row(row)}, {where})"
            if name != "X" or np.isinf(array[row, column]):
                remedy = "correct or drop such rows first"
        raise ValueError(f"{name} holds {what}; {remedy}")
    return array


def warn_of_digits(values: Any, dtype: Any, name: str = "X") -> None:
    """Warn of whole numbers in an array or a data frame that have too many digits for `dtype`."""
    if hasattr(values, "select_dtypes"):
        whole = values.select_dtypes("integer")
        holes = whole.isna().any().to_numpy(bool)
        parts = [whole.iloc[:, n].dropna() for n in np.flatnonzero(holes)]
        of_objects = (values.dtypes == "object").to_numpy()
        parts += [whole.loc[:, ~holes], values.loc[:, of_objects]]
    else:  # `columns` are columns in PyArrow, names in Polars
        columns = getattr(values, "columns", [values])
        parts = [values[one] if isinstance(one, str) else one for one in columns]
    largest = max(map(_largest_whole, parts), default=0)
    if largest > int(2 / np.finfo(dtype).eps):
        advice = "leave out columns of keys" if name == "X" else "subtract a constant"
        warn(
            f"{name} holds a whole number of size {largest}, which has too many digits for "
            f"{np.dtype(dtype).name}: close values become equal; {advice}"
        )


def _largest_whole(part: Any) -> int:
    """:return: the largest size of a whole number in an array, or 0."""
    known = getattr(part, "drop_null", getattr(part, "drop_nulls", lambda: part))
    array = np.asarray(known())
    if array.dtype.kind == "O":
        array = np.array([one for one in array.flat if isinstance(one, Integral)], object)
    elif array.dtype.kind not in "iu":
        return 0
    return max(int(array.max()), -int(array.min())) if array.size else 0


def has_masked(values: Any) -> bool:
    """:return: True for an array with masked values."""
    return isinstance(values, np.ma.MaskedArray) and bool(np.any(values.mask))


def refuse_masked(values: Any, name: str) -> None:
    """:raise ValueError: for masked values, which NumPy would use like others."""
    if has_masked(values):
        raise ValueError(f"{name} has masked values; drop such rows, or use {name}.filled(...)")


def refuse_lazy(**values: Any) -> None:
    """:raise TypeError: for a query of Polars, DuckDB or Spark, which holds no rows."""
    for name, value in values.items():
        kind = type(value).__name__
        read = {"LazyFrame": "collect", "DuckDBPyRelation": "df"}.get(kind, "toPandas")
        if read != "toPandas" or hasattr(value, "toPandas"):
            raise TypeError(f"{name} is a {kind}, which holds no rows: give {name}.{read}()")


def check_inputs(X: Any, origin: Origin = _WHOLE) -> Any:
    """
    :return: X [N, D] as an array, or as `SparseRows` if it is a SciPy sparse matrix.
    :raise ValueError: unless X is finite and has two dimensions and GPflow's default float type.
    """
    array = as_matrix(X, "X", origin)
    check_dtype(array)
    return array


def check_dtype(X: Any) -> None:
    """:raise ValueError: unless the array or tensor has GPflow's default float type."""
    expected: np.dtype[Any] = np.dtype(gpflow.config.default_float())
    dtype = getattr(X, "dtype", expected)
    found = np.dtype(dtype.as_numpy_dtype if isinstance(dtype, tf.DType) else dtype)
    check_kind(found)
    # TensorFlow has no name for some types, such as np.longdouble.
    if found.newbyteorder("=") != expected:
        raise ValueError(
            f"X has dtype {found.name}, but gpflow.config.default_float() is "
            f"{expected.name}; use gpflow.utilities.to_default_float(X), or "
            "gpflow.config.set_default_float"
        )


def check_kind(dtype: np.dtype[Any], name: str = "X") -> None:
    """:raise ValueError: for anything but real numbers, such as words or dates."""
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold numbers, got {dtype}: encode words (as OneHotEncoder does), convert "
            f"dates to days, split complex numbers; if all are numbers, use {name}.astype(float)"
        )


def check_size(X: Any, origin: Origin = _WHOLE) -> None:
    """:raise ValueError: for a finite number in X whose square overflows."""
    stored = X.values if isinstance(X, SparseRows) else X
    most = np.sqrt(np.finfo(X.dtype).max)
    if stored.size and max(stored.max(), -stored.min()) > most:
        where = ""
        if stored is X:
            row, column = np.argwhere(np.abs(X) > most)[0]
            where = f" ({origin.row(row)}, {origin.column(column)})"
        raise ValueError(
            f"X holds a number above {most:.0e}{where}, whose square overflows: correct it, or "
            "scale X (sklearn.preprocessing.StandardScaler)"
        )


def check_data(
    likelihood: Likelihood,
    data: tuple[Any, Any],
    *,
    minibatch: bool = False,
    origin: Origin = _WHOLE,
) -> tuple[AnyNDArray, AnyNDArray]:
    """
    Check a training set (X, Y), or a part of it (which may have only one class).

    :return: X [N, D] and Y [N, P] as arrays.
    :raise TypeError: unless `data` is a pair; see also `refuse_lazy`.
    :raise ValueError: for bad inputs or labels, or for X and Y of different lengths.
    """
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise TypeError(f"data must be a pair of arrays (X, Y), got {type(data).__name__}")
    X = check_inputs(data[0], origin)
    Y = as_matrix(as_column(likelihood, as_array(data[1], "Y")), "Y", origin)
    if len(X) != len(Y):
        raise ValueError(f"X has {len(X)} rows and Y has {len(Y)}; they must be equal")
    check_labels(likelihood, Y, minibatch=minibatch)
    return X, label_numbers(likelihood, Y)


def check_weights(
    sample_weight: Any, num_rows: int, *, minibatch: bool = False, origin: Origin = _WHOLE
) -> AnyNDArray:
    """
    :return: weights as a column [N, 1], ones if None.
    :raise ValueError: unless they are N numbers from 0 to `MOST_WEIGHT`; all may be 0 in a
        minibatch.
    """
    dtype = gpflow.config.default_float()
    if sample_weight is None:
        return np.ones((num_rows, 1), dtype)
    refuse_masked(sample_weight, "sample_weight")
    try:
        if (given := np.asarray(sample_weight).dtype).kind in "cmM":
            raise ValueError(f"the type is {given}")
        weights: AnyNDArray = np.asarray(sample_weight, dtype)
        if weights.shape not in ((num_rows,), (num_rows, 1)):
            raise ValueError(f"the shape is {list(weights.shape)}")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"sample_weight must be {num_rows} numbers, one for each row: {error}"
        ) from error
    odd = np.flatnonzero(~((weights >= 0) & (weights <= MOST_WEIGHT)))
    if len(odd):
        raise ValueError(
            f"sample_weight must be finite, non-negative and at most {MOST_WEIGHT:.0e}, got "
            f"{weights.flat[odd[0]]} ({origin.row(odd[0])}): a weight is a number of repetitions"
        )
    if not weights.any() and not minibatch:
        raise ValueError("sample_weight must not be all zero: no row would count")
    return weights.reshape(num_rows, 1)


def duplicate_rows(Z: Any) -> list[tuple[int, int]]:
    """:return: pairs (first, again) of equal rows."""
    _, first, inverse = np.unique(np.asarray(Z), axis=0, return_index=True, return_inverse=True)
    return [(int(f), n) for n, f in enumerate(first[inverse.reshape(-1)]) if f != n]
