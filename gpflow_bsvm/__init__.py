"""Bayesian support vector machines for GPflow."""

from . import augmentation, inducing_points, inference, likelihoods, models, schedules
from .estimators import BSVMClassifier
from .inference import fit
from .version import __version__

__all__ = [
    "BSVMClassifier",
    "__version__",
    "augmentation",
    "fit",
    "inducing_points",
    "inference",
    "likelihoods",
    "models",
    "schedules",
]
