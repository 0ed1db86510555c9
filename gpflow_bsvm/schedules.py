"""Learning rates rho_t of stochastic variational inference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
