"""Learning rates rho_t of stochastic variational inference."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..checks import check_number, check_rate

#: Step number, from 0, to learning rate in (0, 1]. One with `memory` and `rate` besides, such as
#: `gpflow_bsvm.papers.wenzel2017.Adaptive`, is asked for another rate in the loop of `SVI`.
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
        check_number(1, delay=self.delay)
        if not 0.5 < self.forgetting <= 1:
            raise ValueError(f"forgetting must be in (0.5, 1], got {self.forgetting}")

    def __call__(self, step: int) -> float:
        """:return: rho of the step, counted from 0."""
        return float((step + self.delay) ** -self.forgetting)


def check_schedule(learning_rate: Any) -> None:
    """:raise ValueError: unless it is a schedule, or a number in (0, 1]."""
    if isinstance(learning_rate, numbers.Real):
        check_rate(learning_rate=learning_rate)
    elif not callable(learning_rate):
        raise ValueError(
            "learning_rate must be a number in (0, 1], a schedule such as RobbinsMonro(), or a "
            f"function of the step number, got {learning_rate!r}"
        )


def check_optimizer(**options: Any) -> None:
    """:raise ValueError: unless each is a positive number, or an optimiser of Keras."""
    for name, value in options.items():
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        optimizer = hasattr(value, "apply_gradients") and hasattr(value, "get_config")
        if not (optimizer or (number and float(value) > 0)):
            raise ValueError(
                f"{name} must be a positive number, the rate of Adam, or an optimiser of Keras "
                f"such as tf_keras.optimizers.Adam(1e-3), got {value!r}"
            )


def rates(schedule: Schedule | float, step: int, number: int) -> list[float]:
    """
    :return: rates of so many steps from `step` on.
    :raise ValueError: for a rate outside (0, 1].
    """
    if not callable(schedule):
        return [float(schedule)] * number
    values = [schedule(step + t) for t in range(number)]
    for t, rate in enumerate(values):
        if not 0 < rate <= 1:
            raise ValueError(f"the schedule gave {rate} at step {step + t}; expected (0, 1]")
    return values
