"""What one label says about f. A likelihood never knows a model."""

from .base import HasSites, sites, sites_by_autodiff
from .binary import BinaryLikelihood
from .categorical import CategoricalLikelihood
from .crammer_singer import CrammerSinger
from .hinge import Hinge
from .one_vs_rest import OneVsRest
from .probit import Probit

__all__ = [
    "BinaryLikelihood",
    "CategoricalLikelihood",
    "CrammerSinger",
    "HasSites",
    "Hinge",
    "OneVsRest",
    "Probit",
    "sites",
    "sites_by_autodiff",
]
