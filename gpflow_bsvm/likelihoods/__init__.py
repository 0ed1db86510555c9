"""Likelihoods: what one label says about f."""

from .base import Classification, Sites, sites, sites_by_autodiff
from .binary import BinaryLikelihood, PolyaGammaLogistic, Probit
from .categorical import CategoricalLikelihood
from .crammer_singer import CrammerSinger
from .hinge import Hinge, HingeSum, Terms
from .hooks import Hook, has_hook
from .labels import signs
from .level_hinge import LevelHinge, OneVsRestLevelHinge
from .levels import Levels, location_spread
from .one_class import OneClass
from .one_vs_rest import OneVsRest
from .ordinal import Ordinal
from .quantile import Quantile
from .regression import EpsilonInsensitive
from .squared_hinge import SquaredHinge

__all__ = [
    "BinaryLikelihood",
    "CategoricalLikelihood",
    "Classification",
    "CrammerSinger",
    "EpsilonInsensitive",
    "Hinge",
    "HingeSum",
    "Hook",
    "LevelHinge",
    "Levels",
    "OneClass",
    "OneVsRest",
    "OneVsRestLevelHinge",
    "Ordinal",
    "PolyaGammaLogistic",
    "Probit",
    "Quantile",
    "Sites",
    "SquaredHinge",
    "Terms",
    "has_hook",
    "location_spread",
    "signs",
    "sites",
    "sites_by_autodiff",
]
