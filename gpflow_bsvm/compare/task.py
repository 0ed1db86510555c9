"""What a comparison asks of its models."""

from __future__ import annotations

from dataclasses import dataclass


class Skipped(Exception):
    """A model that does not take part on these data; the message says why."""


@dataclass(frozen=True)
class KernelSettings:
    """
    :ivar lengthscale: of the squared exponential kernel, on standardized features.
    :ivar variance: of the kernel.
    :ivar learn: whether learning starts from these (Gaussian processes then have a lengthscale for
        every feature), or they are fixed.
    :ivar offset: variance of a constant in the kernel of Gaussian processes; 0: none.
    """

    lengthscale: float
    variance: float = 4.0
    learn: bool = False
    offset: float = 0.0
