"""The learning rate of Wenzel et al. (2017), which follows what the minibatches say."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf
from check_shapes import check_shapes

from ...checks import check_rate, check_whole
from ...engine.natural import Natural


@dataclass(frozen=True)
class Adaptive:
    """
    The rate that minimises the expected distance to the full-data step (Ranganath et al. 2013,
    eq. 9; Wenzel et al. 2017, section 4.2), from the residual g of the natural parameters, target
    minus present value:

        gbar <- (1 - 1/tau) gbar + g / tau,       sbar <- (1 - 1/tau) sbar + |g|^2 / tau,
        rho = |gbar|^2 / sbar,                    tau <- tau (1 - rho) + 1.

    It lies in (0, 1]: near 1 while all minibatches pull the same way, small when only their noise
    is left. For `gpflow_bsvm.inference.SVI` only, which evaluates it in its compiled loop; it does
    not sum to infinity by construction, as Robbins and Monro's do.

    :ivar warm_up: steps over which gbar and sbar are plain means.
    :ivar first: rate of these, in (0, 1].
    """

    warm_up: int = 20
    first: float = 0.03

    def __post_init__(self) -> None:
        check_whole(1, warm_up=self.warm_up)
        check_rate(first=self.first)

    def __call__(self, step: int) -> float:
        """:return: `first`, for any step: `rate` makes another of it."""
        return self.first

    def memory(self, natural: Natural) -> tuple[tf.Tensor, ...]:
        """:return: gbar (as h and P), sbar, tau and the number of steps, before the first."""
        zero = tf.zeros([], natural.h.dtype)
        return tf.zeros_like(natural.h), tf.zeros_like(natural.P), zero, zero + 1, zero

    @check_shapes("given: []", "residual.h: [L, M]", "return[0]: []")
    def rate(
        self, given: tf.Tensor, residual: Natural, memory: tuple[tf.Tensor, ...]
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
        """
        :param given: `first`.
        :param residual: g.
        :return: rho, and the memory after the step.
        """
        mean_h, mean_P, mean_square, tau, count = memory
        square = sum(tf.reduce_sum(tf.square(part)) for part in residual)
        mean_h += (residual.h - mean_h) / tau
        mean_P += (residual.P - mean_P) / tau
        mean_square += (square - mean_square) / tau
        signal = tf.reduce_sum(tf.square(mean_h)) + tf.reduce_sum(tf.square(mean_P))
        warm = count < self.warm_up
        rho = tf.where(warm, given, tf.minimum(signal / mean_square, 1))
        tau = tf.where(warm, tau + 1, tau * (1 - rho) + 1)
        return rho, (mean_h, mean_P, mean_square, tau, count + 1)
