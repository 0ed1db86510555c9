"""L-BFGS over TensorFlow variables, by SciPy, that a bad value cannot break."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.optimizers import Scipy


def maximise(
    value_and_gradient: Callable[[], tuple[Any, list[tf.Tensor]]],
    variables: list[tf.Variable],
    max_iter: int,
) -> None:
    """
    Raise a function of `variables`; they stay where they are if nothing better is found.

    A value that is not finite, or a matrix without a Cholesky factor, counts as a large loss: it
    costs a shorter step and never the fit.

    :param value_and_gradient: of the variables' present values; an InvalidArgumentError of
        TensorFlow stands for a matrix without a Cholesky factor.
    """
    start = np.asarray(Scipy.initial_parameters(variables), np.float64)
    losses: list[float] = []

    def loss(x: AnyNDArray) -> tuple[float, AnyNDArray]:
        _assign(variables, x)
        try:
            value, gradient = value_and_gradient()
        except tf.errors.InvalidArgumentError:
            return _large(losses), np.zeros_like(x)
        slope = np.asarray(Scipy.pack_tensors(gradient), np.float64)
        if not (math.isfinite(value) and np.isfinite(slope).all()):
            return _large(losses), np.zeros_like(x)
        losses.append(-float(value))
        return losses[-1], -slope

    options = {"maxiter": max_iter}
    best = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    better = bool(losses) and best.fun <= losses[0]
    _assign(variables, best.x if better else start)


def _large(losses: list[float]) -> float:
    return losses[0] + 1e3 * (1 + abs(losses[0])) if losses else 1e100


def _assign(variables: list[tf.Variable], x: AnyNDArray) -> None:
    packed = tf.constant(x, variables[0].dtype)
    Scipy.assign_tensors(variables, Scipy.unpack_tensors(variables, packed))
