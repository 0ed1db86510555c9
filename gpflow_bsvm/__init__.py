"""Bayesian support vector machines for GPflow."""

from . import inference, likelihoods, models, schedules
from .inference import fit

__version__ = "0.1.0"
__all__ = ["fit", "inference", "likelihoods", "models", "schedules"]
