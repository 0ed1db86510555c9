"""Wenzel et al. (2017): a learning rate, sites as parameters, and the local variables."""

from .adaptive import Adaptive
from .dual import DualBSVM
from .hinge import Hinge
from .inducing_points import afkmc2, gaussian_mixture
from .local_variables import (
    augmented_elbo,
    bound_at,
    local_distribution,
    local_moments,
    predict_f_given,
)

__all__ = [
    "Adaptive",
    "DualBSVM",
    "Hinge",
    "afkmc2",
    "augmented_elbo",
    "bound_at",
    "gaussian_mixture",
    "local_distribution",
    "local_moments",
    "predict_f_given",
]
