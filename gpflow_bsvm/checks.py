"""Bad input meets one clear error, early: what was expected, what came, what would work."""

from __future__ import annotations

import warnings
from typing import Any

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.covariances import Kuu
from gpflow.inducing_variables import InducingPoints

from .data.sparse import SparseRows


def as_matrix(values: Any, name: str) -> Any:
    """
    :return: `values` as a finite two-dimensional array, or as `SparseRows`.
    :raise ValueError: for any other shape, no rows, NaN or infinity.
    """
    if scipy.sparse.issparse(values) or isinstance(values, SparseRows):
        return _as_sparse_rows(values, name)
    array = np.asarray(values)
    if array.ndim != 2:
        hint = f"; use {name}[:, None]" if array.ndim == 1 else ""
        raise ValueError(f"{name} must have shape [N, .], got shape {array.shape}{hint}")
    if len(array) == 0:
        raise ValueError(f"{name} has no rows; at least one is needed")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(
            f"{name} holds {array[row, column]} (row {row}, column {column}); "
            "drop or impute such rows first"
        )
    return array


def _as_sparse_rows(values: Any, name: str) -> SparseRows:
    rows = values if isinstance(values, SparseRows) else SparseRows(values)
    if len(rows) == 0:
        raise ValueError(f"{name} has no rows; at least one is needed")
    if rows.dtype.kind == "f" and not np.isfinite(rows.values).all():
        raise ValueError(f"{name} holds NaN or infinity; drop or impute such rows first")
    return rows


def check_model(model: Any) -> None:
    """
    :raise TypeError: if `model` is none that the package's algorithms can fit.
    """
    if not all(hasattr(model, name) for name in ("projector", "natural", "assign_natural")):
        own = "its to_bsvm()" if hasattr(model, "to_bsvm") else "gpflow_bsvm.models.BSVM"
        raise TypeError(
            f"{type(model).__name__} has no closed-form steps: use {own} in its place, or one of "
            "GPflow's optimisers"
        )


def check_inputs(X: Any) -> Any:
    """
    :return: X [N, D] as an array, or as `SparseRows` if it is a SciPy sparse matrix.
    :raise ValueError: if it is not finite, two-dimensional, and of GPflow's default float type.
    """
    array = as_matrix(X, "X")
    expected: np.dtype[Any] = np.dtype(gpflow.config.default_float())
    if array.dtype != expected:
        raise ValueError(
            f"X has dtype {array.dtype}, but gpflow.config.default_float() is {expected}; use "
            "gpflow.utilities.to_default_float(X), or gpflow.config.set_default_float"
        )
    return array


def check_least(least: float, **values: float) -> None:
    """
    :raise ValueError: for an option below its least value, or NaN.
    """
    for name, value in values.items():
        if not value >= least:
            raise ValueError(f"{name} must be at least {least}, got {value}")


def data_of(model: Any, data: Any) -> Any:
    """
    :return: `data`, or those that the model holds for None.
    :raise TypeError: if there are none.
    """
    if data is not None:
        return data
    if not hasattr(model, "data"):
        raise TypeError(f"{type(model).__name__} holds no data: give (X, Y) as the second argument")
    return tuple(part.numpy() for part in model.data)


def check_data(
    likelihood: Any, X: Any, Y: Any, *, minibatch: bool = False
) -> tuple[AnyNDArray, AnyNDArray]:
    """
    Check a training set, or a minibatch: that may hold one class only.

    :return: X [N, D] and Y [N, P] as arrays.
    :raise ValueError: for bad inputs, for X and Y of different length, or if the likelihood's own
        `check_labels`, where it has one, objects to Y.
    """
    X, Y = check_inputs(X), as_matrix(Y, "Y")
    if len(X) != len(Y):
        raise ValueError(f"X has {len(X)} rows and Y has {len(Y)}; they must be equal")
    if hasattr(likelihood, "check_labels"):
        likelihood.check_labels(Y, minibatch=minibatch)
    return X, Y


def check_width(model: Any, X: Any, Y: Any = None) -> None:
    """
    :raise ValueError: if X has another number of columns than the inducing points of `model`, or
        Y another number than it has latent functions (for likelihoods with one label per latent).
    """
    points = inducing_points(model.inducing_variable)
    widths = [("the inducing points have", Z.shape[-1]) for Z in points]
    widths += [("the model has", getattr(model.inducing_variable, "num_inputs", X.shape[-1]))]
    for what, width in widths:
        if width != X.shape[-1]:
            raise ValueError(f"X has {X.shape[-1]} columns, {what} {width}; they must agree")
    scalar = isinstance(model.likelihood, gpflow.likelihoods.ScalarLikelihood)
    if scalar and Y is not None and Y.shape[-1] != model.num_latent_gps:
        raise ValueError(
            f"Y has {Y.shape[-1]} columns and the model {model.num_latent_gps} latent functions; "
            "this likelihood needs one label per latent function (shape [N, num_latent_gps])"
        )


def check_fit(
    model: Any, data: Any, sample_weight: Any
) -> tuple[AnyNDArray, AnyNDArray, AnyNDArray]:
    """
    Everything that a fit to all the data can be told beforehand.

    :return: X [N, D], Y [N, P], and weights [N, 1], scaled by `num_data` / N where the model's
        `num_data` differs from N.
    :raise ValueError: for bad data, or a `tf.data.Dataset`.
    :raise TypeError: see `check_model`.
    """
    check_model(model)
    data = data_of(model, data)
    if isinstance(data, tf.data.Dataset):
        raise ValueError("all the data are needed as arrays (X, Y); for a Dataset use SVI")
    X, Y = check_data(model.likelihood, *data)
    check_width(model, X, Y)
    weight = check_weights(sample_weight, len(X))
    if model.num_data is not None:
        weight = weight * (float(model.num_data) / len(X))
    return X, Y, weight


def check_point_sites(likelihood: Any) -> None:
    """
    :raise ValueError: unless the likelihood's sites at variance 0 touch log p from below
        (`has_point_sites`), as those of an augmentation do.
    """
    if not getattr(likelihood, "has_point_sites", False):
        raise ValueError(
            f"{type(likelihood).__name__} as it is has no sites at a point: use a likelihood with "
            'bound="augmented" (Hinge, OneVsRest), or CAVI, which takes any'
        )


def check_weights(sample_weight: Any, num_rows: int, *, minibatch: bool = False) -> AnyNDArray:
    """
    :return: weights as a column [N, 1], ones for None.
    :raise ValueError: if they are not N finite non-negative numbers, or all zero (which those of a
        minibatch may be).
    """
    dtype = gpflow.config.default_float()
    if sample_weight is None:
        return np.ones((num_rows, 1), dtype)
    weights: AnyNDArray = np.asarray(sample_weight, dtype).reshape(-1, 1)
    if len(weights) != num_rows:
        raise ValueError(f"sample_weight has {len(weights)} entries for {num_rows} rows")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and non-negative")
    if not weights.any() and not minibatch:
        raise ValueError("sample_weight must not be all zero")
    return weights


def check_elbo(elbo: float, when: str) -> None:
    """
    :raise ValueError: if the ELBO is not finite.
    """
    if not np.isfinite(elbo):
        raise ValueError(
            f"the ELBO or its gradient is not finite {when}: the kernel or the mean function "
            "overflows, or a label is none that the likelihood knows; standardise X and check the "
            "kernel's parameters"
        )


def warn_of_constants(X: AnyNDArray, names: Any = None) -> None:
    """
    Warn the caller's caller of columns that say nothing; they do no harm.

    :param names: of the columns; None: numbers.
    """
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
    if len(constant) == 0:
        return
    shown = ", ".join(str(c if names is None else names[c]) for c in constant[:5])
    more = ", ..." if len(constant) > 5 else ""
    warnings.warn(
        f"{len(constant)} of {X.shape[1]} columns are constant and carry no information: "
        f"{shown}{more}",
        stacklevel=3,
    )


def inducing_points(inducing_variable: Any) -> list[AnyNDArray]:
    """:return: every Z [M, D] that is made of nothing but inputs (no patches, no scales)."""
    parts = getattr(inducing_variable, "inducing_variables", (inducing_variable,))
    return [np.asarray(part.Z) for part in parts if type(part) is InducingPoints]


def duplicate_rows(Z: Any) -> list[tuple[int, int]]:
    """:return: pairs (first, again) of equal rows."""
    _, first, inverse = np.unique(np.asarray(Z), axis=0, return_index=True, return_inverse=True)
    firsts = first[inverse.reshape(-1)]
    return [(int(f), n) for n, f in enumerate(firsts) if f != n]


def explain_cholesky_failure(kernel: tf.Module, inducing_variable: tf.Module, jitter: float) -> str:
    """:return: the likely reason why Kuu has no Cholesky factor, and what to do about it."""
    values = {name: np.asarray(p) for name, p in gpflow.utilities.parameter_dict(kernel).items()}
    for pairs in map(duplicate_rows, inducing_points(inducing_variable)):
        if pairs:
            first, again = pairs[0]
            return f"inducing points {first} and {again} are equal: remove duplicates"
    shown = ", ".join(
        f"kernel{name} = {np.array2string(v, precision=3, threshold=4)}"
        for name, v in values.items()
    )
    if not np.isfinite(np.asarray(Kuu(inducing_variable, kernel))).all():
        return (
            f"the kernel is not finite at the inducing points, with {shown}: standardise X, and "
            "restart from moderate kernel values"
        )
    return (
        f"inducing points are too close for the kernel values {shown}: standardise X, use a "
        "smaller lengthscale or variance, fewer inducing points, float64, or a jitter above "
        f"{jitter:.0e}"
    )
