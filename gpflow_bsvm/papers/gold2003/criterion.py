"""Criteria for choosing kernel and penalty: base classes, and Laplace's evidence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel

from ...checks import check_choice, check_number
from ...notices import warn
from .mode import Mode, pull_back, svm_mode
from .squared_hinge import SLACKS, log_kappa, losses


class Criterion(ABC):
    """
    A measure of the quality of kernel and penalty, computed from the training data alone.

    :cvar greater_is_better: True if the criterion is maximized, False if it is minimized.
    :cvar looks_at_penalty: False if only the product of penalty and kernel matters, so one of
        penalty and variance must be fixed.
    :cvar has_gradient: whether `gradient` is available.
    :ivar slack: the support vector machine's slack, "linear" or "quadratic".
    """

    greater_is_better: ClassVar[bool]
    looks_at_penalty: ClassVar[bool] = True
    has_gradient: ClassVar[bool] = False
    slack: str = "linear"

    def __post_init__(self) -> None:
        check_choice(SLACKS, slack=self.slack)

    @abstractmethod
    def __call__(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> float:
        """
        :param kernel: a kernel of one latent function, which is used unchanged.
        :param data: X [N, D] and Y [N, 1] of two classes.
        :param penalty: C, positive and finite.
        :raise ValueError: for bad data, penalty or kernel.
        """

    def gradient(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> Gradient:
        """
        :return: the derivatives with respect to the kernel's trainable parameters and the penalty.
        :raise ValueError: as for the criterion, or if it has no gradient.
        """
        raise ValueError(f'{type(self).__name__} has no gradient: use method="Nelder-Mead"')

    def cost(self, value: float) -> float:
        """:return: the value, negated if greater is better."""
        return -value if self.greater_is_better else value


class Gradient(NamedTuple):
    """A criterion and its derivatives (of a `MachineCriterion`: at fixed support vectors)."""

    value: float  #: NaN if the criterion has no value
    kernel: dict[str, AnyNDArray]  #: with respect to the kernel's (constrained) trainable values
    penalty: float
    error: Gradient | None = None  #: standard errors, if derivatives are estimates


class MachineCriterion(Criterion):
    """
    A criterion of a support vector machine, as a function of tensors; by default an estimate of the
    leave-one-out error.
    """

    greater_is_better = False
    looks_at_penalty = False
    has_gradient = True

    @abstractmethod
    def _of(self, mode: Mode) -> tf.Tensor:
        """:return: the criterion of a machine that consists of arrays or tensors, []."""

    def of_mode(self, mode: Mode) -> float:
        """
        :param mode: a machine with this criterion's slack.
        :return: the criterion.
        :raise ValueError: for another slack.
        """
        self._check(mode)
        return float(self._of(mode))

    def __call__(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> float:
        return self.of_mode(svm_mode(kernel, data, penalty, slack=self.slack))

    def gradient(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> Gradient:
        """
        See `Criterion`. Automatic differentiation keeps the sets of rows fixed (no support vectors,
        on the margin, bounded); the result is exact unless a row changes its set.

        :raise ValueError: as in `Criterion`, or if rows on the margin are equal.
        """
        if not self.has_gradient:
            return super().gradient(kernel, data, penalty)
        mode = svm_mode(kernel, data, penalty, slack=self.slack)
        gram = tf.constant(mode.gram)
        C = tf.constant(mode.penalty, tf.float64)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([gram, C])
            value = self._of(_follow(mode, gram, C))
        zero = tf.UnconnectedGradients.ZERO
        by_gram, by_penalty = tape.gradient(value, [gram, C], unconnected_gradients=zero)
        return Gradient(float(value), pull_back(kernel, data[0], by_gram), float(by_penalty))

    def _check(self, mode: Mode) -> None:
        if mode.slack != self.slack:
            raise ValueError(
                f"{type(self).__name__} is for {self.slack} slack, got a mode of {mode.slack} slack"
            )


@dataclass(frozen=True)
class StepCriterion(MachineCriterion):
    """A criterion that is a fraction of rows, and therefore a step function."""

    has_gradient = False

    slack: str = "linear"


def taken(values: Any, rows: AnyNDArray) -> tf.Tensor:
    """:return: these rows of a tensor."""
    # Outside a graph, the gradient of `tf.gather` needs a dozen more operations.
    return tf.gather_nd(values, rows[:, None])


def block_of(mode: Mode) -> tf.Tensor:
    """:return: the Gram matrix of the support vectors that are not bounded."""
    return taken(tf.transpose(taken(mode.gram, mode.marginal)), mode.marginal)


def _follow(mode: Mode, gram: tf.Tensor, C: tf.Tensor) -> Mode:
    """:return: the machine as tensors, a function of gram and C at fixed sets of rows."""
    y = mode.y
    rows = mode.marginal
    signed = C * (y * np.isin(np.arange(len(y)), mode.bounded))  # alpha y
    if len(rows):
        lacking = taken(y - tf.linalg.matvec(gram, signed), rows)
        block = block_of(mode._replace(gram=gram))
        if mode.slack == "quadratic":
            block += tf.eye(len(rows), dtype=gram.dtype) / C
        signed += tf.scatter_nd(rows[:, None], _solve(block, lacking), y.shape)
    latent = tf.linalg.matvec(gram, signed)
    return mode._replace(gram=gram, penalty=C, alpha=signed * y, latent=latent)


def _solve(block: tf.Tensor, lacking: tf.Tensor) -> tf.Tensor:
    """:return: block^-1 lacking; raises ValueError for equal rows."""
    try:
        return tf.linalg.solve(block, lacking[:, None])[:, 0]
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(
            "the kernel does not distinguish some rows on the margin: merge equal rows, or add a "
            "small gpflow.kernels.White to the kernel"
        ) from error


@dataclass(frozen=True)
class LaplaceEvidence(MachineCriterion):
    r"""
    Laplace's approximation of the log evidence per row (eq. 15 to 17); greater is better:

        1/N log Q* - 1/(2N) log det(I + L K_m),
        1/N log Q* = 1/N sum_n (-1/2 alpha_n z_n - C l(z_n)) + log kappa,

    where m are the support vectors that are not bounded, L is their diagonal matrix of curvatures,
    and kappa is the factor with which the likelihoods of both labels sum to at most 1 (eq. 6):

        linear slack:       L = 2 pi (alpha (C - alpha) / C)^2
        quadratic slack:    L = C exp(-a / (1 - z))

    For linear slack, the kink of the loss is integrated exactly; if no row is on the margin, the
    second term is 0, and a warning is raised. For quadratic slack, the number a smooths the step in
    the loss's second derivative.

    :ivar smoothing: `a` above; 0: no smoothing.
    """

    greater_is_better = True
    looks_at_penalty = True

    slack: str = "linear"
    smoothing: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(0, smoothing=self.smoothing)

    def _of(self, mode: Mode) -> tf.Tensor:
        C = mode.penalty
        z = mode.margins
        log_q = -tf.reduce_mean(mode.alpha * z / 2 + C * losses(self.slack, z))
        root = tf.sqrt(self._curvatures(taken(mode.alpha, mode.marginal), C))
        B = root[:, None] * block_of(mode) * root + tf.eye(len(mode.marginal), dtype=root.dtype)
        half_log_det = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(tf.linalg.cholesky(B))))
        return log_q + log_kappa(self.slack, C) - half_log_det / len(mode.y)

    def _curvatures(self, alpha: tf.Tensor, C: tf.Tensor) -> tf.Tensor:
        """:return: L, for alpha of m."""
        if self.slack == "quadratic":
            return C * tf.exp(-self.smoothing * C / alpha)  # 1 - z = alpha / C
        if len(alpha) == 0:
            warn(
                "all support vectors are at the bound and none is on the margin, so Laplace's "
                "evidence has no curvature; use a larger penalty or variance"
            )
        return 2 * np.pi * tf.square(alpha * (C - alpha) / C)
