"""Checks of a user's kernel, and the columns of X that it uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.kernels import ChangePoints, Kernel, MultioutputKernel

from ..engine.projection import check_kernel, values_of

#: Names of kernels in scikit-learn.
_INSTEAD = {
    "rbf": '; for scikit-learn\'s "rbf" use None',
    "poly": '; for scikit-learn\'s "poly" use gpflow.kernels.Polynomial(degree=3, offset=1.0)',
    "sigmoid": '; scikit-learn\'s "sigmoid" is no covariance: gpflow.kernels.ArcCosine(order=0) is',
    "precomputed": "; a Gram matrix lacks the variance of new rows: give the kernel itself",
}
#: Number of rows used to detect columns of codes.
_ROWS = 20


def check_kernel_name(kernel: Any) -> None:
    """:raise ValueError: for an unknown string, or a kernel of several outputs."""
    if isinstance(kernel, MultioutputKernel):
        raise ValueError(
            "kernel must have one output, which all latent functions share, got "
            f"{type(kernel).__name__}: give one of its kernels, or use gpflow_bsvm.models.BSVM"
        )
    if isinstance(kernel, str) and kernel != "linear":
        raise ValueError(
            f'kernel must be a GPflow kernel, None or "linear", got {kernel!r}'
            f"{_INSTEAD.get(kernel, '')}"
        )


def columns_of(part: Kernel, num_columns: int) -> AnyNDArray:
    """:return: indices of the columns that a part of a kernel uses."""
    return np.arange(num_columns)[part.active_dims]


def parts_of(kernel: Kernel) -> list[Kernel]:
    """:return: a kernel and all kernels within it."""
    return [part for part in (kernel, *kernel.submodules) if isinstance(part, Kernel)]


def unscaled_columns(kernel: Any, X: Any, fill: AnyNDArray | None = None) -> list[int]:
    """
    The columns that must stay unscaled for a user's kernel: codes, and columns of `ChangePoints`,
    whose locations are in units of X. A column holds codes if f depends on it but has no slope
    along it, as in `Coregion`, `Categorical` and custom kernels that test x and x' for equality.

    :param X: [N, D], unscaled.
    :param fill: see `inputs.medians`.
    :raise ValueError: if the kernel rejects such rows.
    """
    if not isinstance(kernel, Kernel):
        return []
    X = np.asarray(X[:: max(1, len(X) // _ROWS)])
    try:
        values_of(kernel, X)
    except ValueError as error:
        about = _misfit(kernel, X.shape[1])
        name = f"the kernel {type(kernel).__name__} does not take X of {X.shape[1]} columns: "
        raise ValueError(f"{name if about else ''}{about or error}{_added(fill)}") from error
    # Test both: smooth kernels have no slope at equal rows, equality tests none near them.
    flat = _flat(kernel, X, X) & _flat(kernel, X, X * (1 + 1e-9) + 1e-9)
    changing = [part for part in parts_of(kernel) if isinstance(part, ChangePoints)]
    kept = {int(c) for part in changing for c in columns_of(part, X.shape[1])}
    return sorted(kept | {c for c in np.flatnonzero(flat).tolist() if _depends(kernel, X, c)})


def _flat(kernel: Kernel, X: AnyNDArray, X2: AnyNDArray) -> AnyNDArray:
    """:return: [D], True for columns of X2 along which K(X, X2) has no slope."""
    weight = np.random.default_rng(0).normal(size=(len(X), len(X)))  # so that no sum is 0 by chance
    at = tf.constant(X2)
    with tf.GradientTape() as tape:
        tape.watch(at)
        total = tf.reduce_sum(weight.astype(X.dtype) * kernel(X, at))
    slopes = tape.gradient(total, at, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return np.asarray((slopes.numpy() == 0).all(axis=0))


def _depends(kernel: Kernel, X: AnyNDArray, column: int) -> bool:
    """:return: True if the kernel changes with the column, or the column is constant."""
    values, place = np.unique(X[:, column], return_inverse=True)
    other = X.copy()
    other[:, column] = np.roll(values, 1)[place.reshape(-1)]
    return len(values) < 2 or not np.array_equal(kernel(X, X.copy()), kernel(X, other))


def check_covariance(kernel: Any, X: AnyNDArray) -> None:
    """
    :param X: [N, D], scaled.
    :raise ValueError: if a user's kernel is not a covariance for such rows.
    """
    if isinstance(kernel, Kernel):
        check_kernel(kernel, X)


def _misfit(kernel: Kernel, num_columns: int) -> str:
    """:return: a description of the parts of a kernel that do not fit."""
    for part in parts_of(kernel):
        name = type(part).__name__
        dims = part.active_dims
        if not isinstance(dims, slice) and np.max(dims) >= num_columns:
            return f"{name} has active_dims up to {np.max(dims)}, and columns count from 0"
        number = np.size(getattr(part, "lengthscales", 1.0))
        if number not in (1, len(columns_of(part, num_columns))):
            return f"{name} has lengthscales for {number}"
    return ""


def _added(fill: AnyNDArray | None) -> str:
    """:return: a note on the columns added by `impute`."""
    if fill is None or not fill[1].any():
        return ""
    where = np.flatnonzero(fill[1]).tolist()
    number = fill.shape[1]
    return (
        f" (impute=True has appended indicators of missing values in columns {where}, from column "
        f"{number} on: give the kernel active_dims=range({number}), or lengthscales for the new "
        "columns)"
    )
