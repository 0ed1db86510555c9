"""Bayesian support vector machines for GPflow."""

from . import inducing_points, inference, likelihoods, models, schedules
from .inference import fit
from .version import __version__

__all__ = [
    "__version__",
    "fit",
    "inducing_points",
    "inference",
    "likelihoods",
    "models",
    "schedules",
]
