"""Quasi-Newton steps over TensorFlow variables with SciPy, robust to values that are not finite."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from scipy.optimize import LbfgsInvHessProduct, OptimizeResult, minimize

ValueAndGradient = Callable[[], tuple[Any, list[tf.Tensor]]]

#: Keep the curvature of at most this many variables: an update costs the cube of their number.
_MOST_VALUES = 1000


def maximise(
    value_and_gradient: ValueAndGradient,
    variables: list[tf.Variable],
    max_iter: int,
    inverse: AnyNDArray | None = None,
    least_gain: float = -math.inf,
    noise: float = 0.0,
) -> AnyNDArray | None:
    """
    Maximize a function of the variables. If no better values are found, keep the current values.

    A non-finite value or a matrix without a Cholesky factor counts as a large loss: it shortens the
    step without ending the fit. A search can start from the curvature (`inverse`) of an earlier,
    similar function, unless there are too many variables.

    :param value_and_gradient: a function at the variables' current values; TensorFlow's
        InvalidArgumentError signals a matrix without a Cholesky factor.
    :param max_iter: maximum number of iterations, each with a few evaluations.
    :param inverse: inverse of an earlier Hessian estimate, or None.
    :param least_gain: stop after an iteration with a smaller gain.
    :param noise: rounding error of the function. Stop where `inverse` promises a smaller gain: a
        line search would compare rounding errors, with dozens of evaluations.
    :return: the current estimate of the Hessian's inverse, or None.
    """
    loss = Loss(value_and_gradient, variables, least_gain, inverse, noise)
    if inverse is None:
        best = loss.minimize("L-BFGS-B", {"maxiter": max_iter})
    else:
        best = loss.minimize("BFGS", {"maxiter": max_iter, "hess_inv0": inverse})
    if best is None:
        return None
    if best.nit:
        return _learned(best)
    return inverse if best.success else None  # forget the curvature if a search failed


def _learned(best: OptimizeResult) -> AnyNDArray | None:
    """:return: the inverse of the Hessian, positive definite; None if it is too large."""
    if len(best.x) > _MOST_VALUES:
        return None
    inverse = best.hess_inv
    if isinstance(inverse, LbfgsInvHessProduct):  # SciPy starts from I, at any scale
        s = inverse.sk
        y = inverse.yk
        if len(s) == 0:
            return None
        scale = (s[-1] @ y[-1]) / (y[-1] @ y[-1])
        inverse = LbfgsInvHessProduct(s, scale * y).todense() * scale
    inverse = (inverse + inverse.T) / 2
    try:
        np.linalg.cholesky(inverse)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(inverse)


class Loss:
    """The negative of a function of TensorFlow variables, to minimize by SciPy."""

    def __init__(
        self,
        what: ValueAndGradient,
        variables: list[tf.Variable],
        least_gain: float = -math.inf,
        inverse: AnyNDArray | None = None,
        noise: float = 0.0,
    ) -> None:
        self._what = what
        self._variables = variables
        self._least_gain = max(least_gain, noise)
        self._inverse = inverse
        self._noise = noise
        self._slope = np.empty(0), np.empty(0)  # the latest point, and its slope
        self._seen: list[float] = []  # finite losses, from the start on
        self._latest = math.inf

    def minimize(
        self, method: str, options: dict[str, Any], tol: float | None = None
    ) -> OptimizeResult | None:
        """
        Assign the best values found to the variables.

        Arguments are as in `scipy.optimize.minimize`.

        :return: SciPy's result; None if it is worse than the start, which is then assigned.
        """
        start = _packed(self._variables)
        how = {"jac": True, "method": method, "tol": tol, "options": options}
        with warnings.catch_warnings():  # a failed line search warns and ends the iterations
            warnings.simplefilter("ignore", RuntimeWarning)
            best = minimize(self, start, callback=self._stop, **how)
        better = bool(self._seen) and best.fun <= self._seen[0]
        _assign(self._variables, best.x if better else start)
        return best if better else None

    def __call__(self, x: AnyNDArray) -> tuple[float, AnyNDArray]:
        """:return: the loss and its gradient; if they are not finite, a large loss and 0."""
        _assign(self._variables, x)
        try:
            value, gradient = self._what()
            loss = -float(value)
            slope = -_packed(gradient)
        except tf.errors.InvalidArgumentError:
            loss = math.nan
            slope = x
        if math.isfinite(loss) and np.isfinite(slope).all():
            self._seen.append(loss)
            self._slope = x.copy(), slope
            return loss, slope
        large = self._seen[0] + 1e3 * (1 + abs(self._seen[0])) if self._seen else 1e100
        return large, np.zeros_like(x)

    def _stop(self, intermediate_result: OptimizeResult) -> None:
        """Stop after or before a small gain; SciPy calls this after each iteration."""
        before = min(self._latest, self._seen[0])
        self._latest = intermediate_result.fun
        ends = before - self._latest < self._least_gain
        x, slope = self._slope
        if self._inverse is not None and np.array_equal(x, intermediate_result.x):
            ends |= slope @ self._inverse @ slope / 2 < self._noise
        if ends:
            raise StopIteration


def _packed(values: Sequence[Any]) -> AnyNDArray:
    """:return: all values in one array (weights of a network may be in single precision)."""
    return np.concatenate([np.ravel(value.numpy()).astype(np.float64) for value in values])


def _assign(variables: list[tf.Variable], x: AnyNDArray) -> None:
    ends = np.cumsum([math.prod(variable.shape) for variable in variables])
    for variable, part in zip(variables, np.split(x, ends[:-1])):
        variable.assign(part.reshape(variable.shape))
