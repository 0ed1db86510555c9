"""What one label says about f. A likelihood never knows a model."""

from .base import HasSites, sites, sites_by_autodiff
from .binary import BinaryLikelihood
from .crammer_singer import CrammerSinger
from .hinge import Hinge
from .probit import Probit

__all__ = [
    "BinaryLikelihood",
    "CrammerSinger",
    "HasSites",
    "Hinge",
    "Probit",
    "sites",
    "sites_by_autodiff",
]
