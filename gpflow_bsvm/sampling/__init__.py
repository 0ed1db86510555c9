"""Draws from the posterior that q approximates, for inspection and comparison."""

from .gibbs import Gibbs
from .hmc import HMC
from .samples import Samples

__all__ = ["HMC", "Gibbs", "Samples"]
