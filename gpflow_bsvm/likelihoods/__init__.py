"""Likelihoods: what one label says about f."""

from .base import Classification, Sites, sites, sites_by_autodiff
from .binary import BinaryLikelihood, PolyaGammaLogistic, Probit
from .categorical import CategoricalLikelihood
from .crammer_singer import CrammerSinger
from .hinge import Hinge, SquaredHinge
from .hooks import Hook, has_hook
from .labels import signs
from .level_hinge import LevelHinge, OneVsRestLevelHinge
from .levels import Levels, independent, location, location_spread, smooth
from .one_vs_rest import OneVsRest
from .penalty import Bound

__all__ = [
    "BinaryLikelihood",
    "Bound",
    "CategoricalLikelihood",
    "Classification",
    "CrammerSinger",
    "Hinge",
    "Hook",
    "LevelHinge",
    "Levels",
    "OneVsRest",
    "OneVsRestLevelHinge",
    "PolyaGammaLogistic",
    "Probit",
    "Sites",
    "SquaredHinge",
    "has_hook",
    "independent",
    "location",
    "location_spread",
    "signs",
    "smooth",
    "sites",
    "sites_by_autodiff",
]
