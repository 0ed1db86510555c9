"""Learning rates rho_t of stochastic variational inference."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import tensorflow as tf
from check_shapes import check_shapes

from ..checks import check_number, check_rate, check_whole
from ..engine.natural import Natural

#: Maps the step number, from 0, to a learning rate in (0, 1]. `SVI` updates the rate of a schedule
#: with `memory` and `rate`, such as `Adaptive`, in its loop.
Schedule = Callable[[int], float]
#: Learning rates of algorithms on minibatches.
LearningRate = Schedule | float | Literal["adaptive"]


@dataclass(frozen=True)
class RobbinsMonro:
    """
    rho_t = (t + delay)^(-forgetting). The sum of rates diverges and the sum of their squares
    converges, as required for convergence (Hoffman et al. 2013, eq. 26).

    :ivar delay: at least 1; a larger value makes the first steps smaller. (Each minibatch is scaled
        to all the data, so that steps near 1 would replace earlier information by noise.)
    :ivar forgetting: in (0.5, 1]; the rate of forgetting old information.
    """

    delay: float = 100.0
    forgetting: float = 0.7

    def __post_init__(self) -> None:
        check_number(1, delay=self.delay)
        if not 0.5 < self.forgetting <= 1:
            raise ValueError(f"forgetting must be in (0.5, 1], got {self.forgetting}")

    def __call__(self, step: int) -> float:
        """:return: rho of the step, counted from 0."""
        return float((step + self.delay) ** -self.forgetting)


@dataclass(frozen=True)
class Adaptive:
    """
    The rate that minimises the expected distance to the full-data step (Ranganath et al. 2013, eq.
    9; Wenzel et al. 2017, section 4.2), from the residual g of the natural parameters, target minus
    current value:

        gbar <- (1 - 1/tau) gbar + g / tau,       sbar <- (1 - 1/tau) sbar + |g|^2 / tau,
        rho = |gbar|^2 / sbar,                    tau <- tau (1 - rho) + 1.

    The rate lies in (0, 1]: near 1 while all minibatches agree on a direction, small when only
    noise is left. It only works in `SVI`, which evaluates it in its compiled loop; its short form
    is learning_rate="adaptive". Unlike with `RobbinsMonro`, the sum of rates may converge.

    :ivar warm_up: number of initial steps where gbar and sbar are plain means.
    :ivar first: rate of these initial steps, in (0, 1].
    """

    warm_up: int = 20
    first: float = 0.03

    def __post_init__(self) -> None:
        check_whole(1, warm_up=self.warm_up)
        check_rate(first=self.first)

    def __call__(self, step: int) -> float:
        """:return: `first` for any step; `SVI` uses `rate` instead."""
        return self.first

    def memory(self, natural: Natural) -> tuple[tf.Tensor, ...]:
        """:return: gbar (as h and P), sbar, tau and the number of steps, before the first step."""
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


def check_schedule(learning_rate: Any, adaptive: bool = False) -> None:
    """
    :param adaptive: whether `Adaptive` is allowed.
    :raise ValueError: unless it is a schedule, or a number in (0, 1].
    """
    if isinstance(learning_rate, type):
        name = learning_rate.__name__
        raise ValueError(f"learning_rate must be a schedule, got the class {name}: use {name}()")
    if hasattr(learning_rate, "memory") and not adaptive:
        raise ValueError(
            f"{type(learning_rate).__name__} is a learning rate for SVI only; "
            "use RobbinsMonro() or a number in (0, 1] here"
        )
    if isinstance(learning_rate, numbers.Real):
        check_rate(learning_rate=learning_rate)
    elif not callable(learning_rate):
        named = ', "adaptive"' if adaptive else ""
        raise ValueError(
            f"learning_rate must be a number in (0, 1], a schedule such as RobbinsMonro(){named}, "
            f"or a function of the step number, got {learning_rate!r}"
        )


def check_optimizer(**options: Any) -> None:
    """:raise ValueError: unless each option is a positive number or a Keras optimiser."""
    for name, value in options.items():
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        optimizer = hasattr(value, "apply_gradients") and hasattr(value, "get_config")
        if not (optimizer or (number and float(value) > 0)):
            raise ValueError(
                f"{name} must be a positive number, the rate of Adam, or a Keras optimiser such "
                f"as tf_keras.optimizers.Adam(1e-3), got {value!r}"
            )


def rates(schedule: LearningRate, step: int, number: int) -> list[float]:
    """
    :return: the rates of `number` steps, from `step` on.
    :raise ValueError: for a rate outside (0, 1].
    """
    if not callable(schedule):
        return [float(schedule)] * number
    values = [float(schedule(step + t)) for t in range(number)]
    for t, rate in enumerate(values):
        if not 0 < rate <= 1:
            raise ValueError(f"the schedule gave {rate} at step {step + t}; expected (0, 1]")
    return values
