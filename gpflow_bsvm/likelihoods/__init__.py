"""What one label says about f. A likelihood never knows a model."""

from .base import HasSites, sites, sites_by_autodiff
from .binary import BinaryLikelihood
from .categorical import CategoricalLikelihood
from .crammer_singer import CrammerSinger
from .hinge import Hinge
from .normalized_hinge import NormalizedHinge
from .one_vs_rest import OneVsRest
from .polya_gamma import PolyaGammaLogistic
from .probit import Probit
from .squared_hinge import SquaredHinge

__all__ = [
    "BinaryLikelihood",
    "CategoricalLikelihood",
    "CrammerSinger",
    "HasSites",
    "Hinge",
    "NormalizedHinge",
    "OneVsRest",
    "PolyaGammaLogistic",
    "Probit",
    "SquaredHinge",
    "sites",
    "sites_by_autodiff",
]
