"""Calls of kernel and mean function on some rows outside a graph, for clearer errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.functions import MeanFunction
from gpflow.kernels import Coregion, Kernel, MultioutputKernel

#: Number of rows to check.
_ROWS = 10


def check_kernel(kernel: Kernel, X: Any) -> None:
    """
    Call the kernel on some rows.

    :param X: [N, D], the model's input: an array, or an object whose slices are arrays.
    :raise ValueError: if the kernel rejects such rows, or its result is not a covariance; the
        message names the kernel.
    """
    X = np.asarray(X[:: max(1, len(X) // _ROWS)][:_ROWS])
    K, diagonal = values_of(kernel, X)
    if wrong := no_covariance(K, diagonal):
        name = type(kernel).__name__
        raise ValueError(f"the kernel {name} at some rows of X: {rounded(X) or wrong}")


def check_codes(kernel: Kernel, X: Any) -> None:
    """
    :param X: [N, D].
    :raise ValueError: for a code that a `Coregion` in the kernel does not have. (TensorFlow would
        fail with an internal error, or on a GPU read another code.)
    """
    for part in getattr(kernel, "kernels", ()):  # `submodules` would take a millisecond
        check_codes(part, X)
    if isinstance(kernel, Coregion):
        codes = kernel.slice(X, None)[0]
        wrong = np.flatnonzero((codes < 0) | (codes >= kernel.output_dim))
        if len(wrong):
            raise ValueError(
                f"row {wrong[0]} of X has code {np.ravel(codes)[wrong[0]]:g}, but the kernel "
                f"Coregion has codes 0 to {kernel.output_dim - 1}: construct it with a larger "
                "output_dim"
            )


def check_mean(mean_function: MeanFunction, X: Any, num_latents: int) -> None:
    """:raise ValueError: unless the mean function gives one column, or one per latent function."""
    name = type(mean_function).__name__
    try:
        found = mean_function(X[:1]).shape
    except Exception as error:
        raise ValueError(
            f"the mean function {name} cannot be called with inputs of {X.shape[-1]} columns: "
            f"{_said(error)}"
        ) from error
    if found[-1] not in (1, num_latents):
        raise ValueError(
            f"the mean function {name} gives {found[-1]} columns: it must give one, or one for "
            f"each of the {num_latents} latent functions"
        )


def values_of(kernel: Kernel, X: AnyNDArray) -> tuple[AnyNDArray, AnyNDArray]:
    """
    :return: K(X) [..., N, N] and K_diag(X) [..., N].
    :raise ValueError: if the kernel rejects such inputs; the message names the innermost failing
        part.
    """
    how = {"full_output_cov": False} if isinstance(kernel, MultioutputKernel) else {}
    try:
        K, diagonal = (kernel(X, full_cov=full_cov, **how).numpy() for full_cov in (True, False))
    except Exception as error:
        for part in getattr(kernel, "kernels", ()):
            values_of(part, X)
        raise ValueError(
            f"the kernel {type(kernel).__name__} cannot be called with inputs of {X.shape[-1]} "
            f"columns: {_said(error)}; check its active_dims and the shapes of its parameters"
        ) from error
    return K, diagonal.T


def no_covariance(K: AnyNDArray, diagonal: AnyNDArray) -> str:
    """:return: the reason why K [..., N, N] is not a covariance, or ""."""
    if not (np.isfinite(K).all() and np.isfinite(diagonal).all()):
        return ""  # overflow raises another error
    own = np.diagonal(K, axis1=-2, axis2=-1)
    size = max(np.abs(K).max(), np.abs(diagonal).max())
    # Tolerate rounding of distances between rows far from 0.
    most = np.finfo(K.dtype).eps ** 0.2 * size
    off = np.unravel_index(np.argmax(np.abs(own - diagonal)), own.shape)
    if np.abs(own - diagonal)[off] > most:
        return f"K_diag(x) is {diagonal[off]:.3g}, but K(x, x) is {own[off]:.3g}"
    if np.abs(K - np.swapaxes(K, -1, -2)).max() > most:
        return "K(x, x') is not K(x', x)"
    least = np.linalg.eigvalsh(K).min()
    return f"its matrix has the negative eigenvalue {least:.3g}" if least < -most else ""


def rounded(X: AnyNDArray) -> str:
    """:return: a note on a column far from 0 whose distances are lost in rounding, or ""."""
    far = np.abs(X).max(axis=0)
    spread = np.ptp(X, axis=0)
    column = int(np.argmax(far))
    if spread[column] > np.finfo(X.dtype).eps ** 0.4 * far[column]:
        return ""
    return (
        f"distances are lost in rounding, because column {column} is near {far[column]:.3g} and "
        f"varies by {spread[column]:.3g}: subtract its mean (sklearn.preprocessing.StandardScaler)"
    )


def _said(error: Exception) -> str:
    """:return: the text of an error, without the traces of TensorFlow and check_shapes."""
    text = str(error).rpartition("Note:")[2].rpartition("}} ")[2].partition(" [Op:")[0]
    return " ".join(text.split())
