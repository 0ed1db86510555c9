"""Quasi-Newton steps over TensorFlow variables, by SciPy, that a bad value cannot break."""

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

#: A matrix of curvatures is kept of this many values at most: an update costs their cube.
_MOST_VALUES = 1000


class QuasiNewton:
    """
    Raises functions of `variables` that resemble each other, one after the other: the curvature
    that was learned of one is where the next begins, if there are not too many values.

    :ivar inverse: of the Hessian that was learned, or None.
    """

    def __init__(self, variables: list[tf.Variable], inverse: AnyNDArray | None = None) -> None:
        self._variables, self.inverse = variables, inverse

    def maximise(
        self, value_and_gradient: ValueAndGradient, max_iter: int, least_gain: float = -math.inf
    ) -> None:
        """
        Raise a function of the variables; they stay where they are if nothing better is found.

        A value that is not finite, or a matrix without a Cholesky factor, counts as a large loss:
        it costs a shorter step and never the fit.

        :param value_and_gradient: of the variables' present values; an InvalidArgumentError of
            TensorFlow stands for a matrix without a Cholesky factor.
        :param max_iter: most iterations, each of one evaluation or a few.
        :param least_gain: stop after an iteration that gains less.
        """
        loss = Loss(self._variables, value_and_gradient, least_gain)
        how: dict[str, Any] = {"method": "L-BFGS-B", "options": {"maxiter": max_iter}}
        if self.inverse is not None:
            how = {"method": "BFGS", "options": {"maxiter": max_iter, "hess_inv0": self.inverse}}
        best = loss.minimise(callback=loss.stop, **how)
        if best and best.nit:
            self.inverse = self._learned(best)
        elif not (best and best.success):  # no step was found, though it is no maximum
            self.inverse = None

    @staticmethod
    def _learned(best: OptimizeResult) -> AnyNDArray | None:
        """:return: the inverse of the Hessian, positive definite; None if it is too large."""
        if len(best.x) > _MOST_VALUES:
            return None
        inverse = best.hess_inv
        if isinstance(inverse, LbfgsInvHessProduct):  # its start, I, has no scale
            s, y = inverse.sk, inverse.yk
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
    """Minus a function of TensorFlow's variables, as SciPy minimises it."""

    def __init__(
        self, variables: list[tf.Variable], what: ValueAndGradient, least_gain: float = -math.inf
    ) -> None:
        self._variables, self._what, self._least_gain = variables, what, least_gain
        self.seen: list[float] = []  #: finite losses, the first that of the start
        self._latest = math.inf

    def __call__(self, x: AnyNDArray) -> tuple[float, AnyNDArray]:
        """:return: the loss and its gradient; where there is none a large loss, and 0."""
        _assign(self._variables, x)
        try:
            value, gradient = self._what()
        except tf.errors.InvalidArgumentError:
            return self._large(), np.zeros_like(x)
        slope = _packed(gradient)
        if not (math.isfinite(value) and np.isfinite(slope).all()):
            return self._large(), np.zeros_like(x)
        self.seen.append(-float(value))
        return self.seen[-1], -slope

    def minimise(self, **how: Any) -> OptimizeResult | None:
        """:return: the result of SciPy; None, and the variables as before, for nothing better."""
        start = _packed(self._variables)
        with warnings.catch_warnings():  # a line search that fails ends the iterations, and says so
            warnings.simplefilter("ignore", RuntimeWarning)
            best = minimize(self, start, jac=True, **how)
        better = bool(self.seen) and best.fun <= self.seen[0]
        _assign(self._variables, best.x if better else start)
        return best if better else None

    def stop(self, intermediate_result: OptimizeResult) -> None:
        """SciPy calls it after an iteration."""
        before, self._latest = min(self._latest, self.seen[0]), intermediate_result.fun
        if before - self._latest < self._least_gain:
            raise StopIteration

    def _large(self) -> float:
        return self.seen[0] + 1e3 * (1 + abs(self.seen[0])) if self.seen else 1e100


def _packed(values: Sequence[Any]) -> AnyNDArray:
    """:return: all in one array; the weights of a network may be in single precision."""
    return np.concatenate([np.ravel(value.numpy()).astype(np.float64) for value in values])


def _assign(variables: list[tf.Variable], x: AnyNDArray) -> None:
    ends = np.cumsum([math.prod(variable.shape) for variable in variables])
    for variable, part in zip(variables, np.split(x, ends[:-1])):
        variable.assign(part.reshape(variable.shape))
