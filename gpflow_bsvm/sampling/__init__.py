"""Draws from the posterior that q approximates, for inspection and comparison."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .samplers import HMC, Gibbs
from .samples import Samples

__all__ = ["HMC", "Gibbs", "Samples"]
