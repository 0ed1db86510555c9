"""Inputs of the compared models."""

from __future__ import annotations

from dataclasses import dataclass


class Skipped(Exception):
    """The model does not suit these data; the message gives the reason."""


@dataclass(frozen=True)
class KernelSettings:
    """
    :ivar lengthscale: lengthscale of the squared exponential kernel on standardized features.
    :ivar variance: variance of the kernel.
    :ivar learn: whether to learn the kernel from these initial values (for Gaussian processes, one
        lengthscale per feature); if not, they stay fixed.
    :ivar offset: variance of a constant kernel that is added for Gaussian processes; 0: none.
    """

    lengthscale: float
    variance: float = 4.0
    learn: bool = False
    offset: float = 0.0
