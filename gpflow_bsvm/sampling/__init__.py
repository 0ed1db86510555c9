"""Draws from the posterior that q approximates: to look at, and to compare with."""

from .gibbs import Gibbs
from .hmc import HMC
from .samples import Interrupted, Samples

__all__ = ["HMC", "Gibbs", "Interrupted", "Samples"]
