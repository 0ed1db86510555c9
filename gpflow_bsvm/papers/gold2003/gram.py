"""Gram matrices, given or of a kernel."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from gpflow.utilities import parameter_dict

from ...data.checks import check_inputs


def pull_back(kernel: Kernel, X: Any, by_gram: Any) -> dict[str, AnyNDArray]:
    """
    :param by_gram: derivatives with respect to k(X, X), [N, N].
    :return: derivatives with respect to the kernel's (constrained) trainable parameters, by
        GPflow's names.
    """
    named = trainable(kernel)
    variables = [parameter.unconstrained_variable for parameter in named.values()]
    with tf.GradientTape() as tape:
        gram = kernel(check_inputs(X))
    zero = tf.UnconnectedGradients.ZERO
    slopes = tape.gradient(gram, variables, tf.cast(by_gram, gram.dtype), zero)
    return {name: _by_value(p, slope) for (name, p), slope in zip(named.items(), slopes)}


def _by_value(parameter: Parameter, slope: tf.Tensor) -> AnyNDArray:
    """:return: the derivative with respect to the value, from that of the unconstrained value."""
    if parameter.transform is None:
        return np.asarray(slope)
    at = tf.convert_to_tensor(parameter.unconstrained_variable)
    return np.asarray(slope * tf.exp(-parameter.transform.forward_log_det_jacobian(at, 0)))


def trainable(kernel: Kernel) -> dict[str, Parameter]:
    """:return: trainable parameters by GPflow's names."""
    return {name: p for name, p in parameter_dict(kernel).items() if p.trainable}


def check_gram(gram: Any, num_rows: int) -> AnyNDArray:
    """
    :return: the Gram matrix, [N, N], exactly symmetric.
    :raise ValueError: unless it is square of this size, finite and symmetric (up to rounding), with
        a non-negative diagonal.
    """
    K: AnyNDArray = np.asarray(gram, dtype=np.float64)
    if K.shape != (num_rows, num_rows):
        raise ValueError(f"the Gram matrix of {num_rows} labels must be square, got {K.shape}")
    if not np.isfinite(K).all():
        raise ValueError("the Gram matrix holds NaN or infinity")
    gaps = np.abs(K - K.T)
    if gaps.max() > 1e-6 * np.abs(K).max():
        row, column = np.unravel_index(gaps.argmax(), K.shape)
        raise ValueError(
            f"the Gram matrix is not symmetric: entries ({row}, {column}) and ({column}, {row}) "
            f"differ by {gaps.max():.3g}; if that is rounding, use (K + K.T) / 2"
        )
    if K.diagonal().min() < 0:
        raise ValueError("the Gram matrix has a negative diagonal, unlike any kernel's")
    return (K + K.T) / 2


def root_of(gram: AnyNDArray) -> AnyNDArray:
    """
    :return: the Cholesky factor [N, N] of the Gram matrix plus GPflow's `default_jitter()` times
        its mean diagonal, so that it exists for any kernel.
    :raise ValueError: for a matrix that is not positive semidefinite.
    """
    jitter = gpflow.config.default_jitter() * gram.diagonal().mean() + np.finfo(float).tiny
    try:
        return np.linalg.cholesky(gram + jitter * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(gram)[0]
        raise ValueError(
            f"the Gram matrix is not positive semidefinite, unlike a kernel's: an eigenvalue is "
            f"{least:.3g}"
        ) from None
