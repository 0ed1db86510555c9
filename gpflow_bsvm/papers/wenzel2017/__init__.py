"""Wenzel et al. (2017): sites as parameters, the paper's inducing points and its printed link."""

from .dual import DualBSVM
from .hinge import Hinge
from .inducing_points import afkmc2, gaussian_mixture

__all__ = ["DualBSVM", "Hinge", "afkmc2", "gaussian_mixture"]
