"""Learning rates rho_t of stochastic variational inference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import tensorflow as tf

#: Step number, from 0, to learning rate in (0, 1].
Schedule = Callable[[int], float]


@dataclass(frozen=True)
class RobbinsMonro:
    """
    rho_t = (t + delay)^(-forgetting), which sums to infinity while its squares do not, as
    convergence needs (Hoffman et al. 2013, eq. 26).

    :ivar delay: at least 1; a larger one makes the first steps smaller. A minibatch speaks for all
        the data, so that steps near 1 replace what is known by noise.
    :ivar forgetting: in (0.5, 1]; the rate at which old information is forgotten.
    """

    delay: float = 100.0
    forgetting: float = 0.7

    def __post_init__(self) -> None:
        if not self.delay >= 1:
            raise ValueError(f"delay must be at least 1, got {self.delay}")
        if not 0.5 < self.forgetting <= 1:
            raise ValueError(f"forgetting must be in (0.5, 1], got {self.forgetting}")

    def __call__(self, step: int) -> float:
        """:return: rho of the step, counted from 0."""
        return float((step + self.delay) ** -self.forgetting)


@dataclass(frozen=True)
class Constant:
    """
    rho_t = rate.

    :ivar rate: in (0, 1].
    """

    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(f"rate must be in (0, 1], got {self.rate}")

    def __call__(self, step: int) -> float:
        """:return: the rate, whatever the step."""
        return self.rate


@dataclass(frozen=True)
class Adaptive:
    """
    The rate that minimises the expected distance to the full-data step (Ranganath et al. 2013,
    eq. 9; Wenzel et al. 2017, section 4.2), from the residual g of the natural parameters, target
    minus present value:

        gbar <- (1 - 1/tau) gbar + g / tau,       sbar <- (1 - 1/tau) sbar + |g|^2 / tau,
        rho = |gbar|^2 / sbar,                    tau <- tau (1 - rho) + 1.

    It lies in (0, 1]: near 1 while all minibatches pull the same way, small when only their noise
    is left. For `SVI` only, which evaluates it in its compiled loop; it does not sum to infinity
    by construction, as Robbins and Monro's do.

    :ivar warm_up: steps over which gbar and sbar are plain means.
    :ivar first: rate of these, in (0, 1].
    """

    warm_up: int = 20
    first: float = 0.03

    def __post_init__(self) -> None:
        if self.warm_up < 1:
            raise ValueError(f"warm_up must be at least 1, got {self.warm_up}")
        if not 0 < self.first <= 1:
            raise ValueError(f"first must be in (0, 1], got {self.first}")

    def memory(self, h: tf.Tensor, P: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """:return: gbar (as h and P), sbar, tau and the number of steps, before the first."""
        zero = tf.zeros([], h.dtype)
        return tf.zeros_like(h), tf.zeros_like(P), zero, zero + 1, zero

    def rate(
        self, given: tf.Tensor, g_h: tf.Tensor, g_P: tf.Tensor, memory: tuple[tf.Tensor, ...]
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
        """
        :param given: `first`.
        :param g_h: [L, M], and g_P: [L, M, M]: the residual.
        :return: rho, and the memory after the step.
        """
        mean_h, mean_P, mean_square, tau, count = memory
        square = tf.reduce_sum(tf.square(g_h)) + tf.reduce_sum(tf.square(g_P))
        mean_h += (g_h - mean_h) / tau
        mean_P += (g_P - mean_P) / tau
        mean_square += (square - mean_square) / tau
        signal = tf.reduce_sum(tf.square(mean_h)) + tf.reduce_sum(tf.square(mean_P))
        warm = count < self.warm_up
        rho = tf.where(warm, given, tf.minimum(signal / mean_square, 1))
        tau = tf.where(warm, tau + 1, tau * (1 - rho) + 1)
        return rho, (mean_h, mean_P, mean_square, tau, count + 1)


class Given:
    """In `SVI`'s loop: the rates that a function of the step number gave."""

    def memory(self, h: tf.Tensor, P: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """:return: nothing."""
        return ()

    def rate(
        self, given: tf.Tensor, g_h: tf.Tensor, g_P: tf.Tensor, memory: tuple[tf.Tensor, ...]
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
        """:return: `given`."""
        return given, memory


def rates(schedule: Schedule | Adaptive | float, step: int, number: int) -> list[float]:
    """
    :return: rates of so many steps from `step` on (of an `Adaptive` its first, the rest it sees to
        itself).
    :raise ValueError: for a rate outside (0, 1].
    """
    if isinstance(schedule, Adaptive):
        return [schedule.first] * number
    if not callable(schedule):
        return [schedule] * number
    values = [schedule(step + t) for t in range(number)]
    for t, rate in enumerate(values):
        if not 0 < rate <= 1:
            raise ValueError(f"the schedule gave {rate} at step {step + t}; expected (0, 1]")
    return values
