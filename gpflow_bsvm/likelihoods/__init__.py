"""Likelihoods: losses of support vector machines as densities of labels given f."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .base import Hooks, Sites, sites, sites_by_autodiff
from .classes import BinaryLikelihood, Logistic, Probit
from .crammer_singer import CrammerSinger
from .hinge import Hinge, HingeSum, OneClass, OneVsRest, Terms
from .labels import signs
from .level_hinge import LevelHinge, OneVsRestLevelHinge, Ordinal
from .levels import Levels, location_spread
from .regression import EpsilonInsensitive, Quantile

__all__ = [
    "BinaryLikelihood",
    "CrammerSinger",
    "EpsilonInsensitive",
    "Hinge",
    "HingeSum",
    "Hooks",
    "LevelHinge",
    "Levels",
    "Logistic",
    "OneClass",
    "OneVsRest",
    "OneVsRestLevelHinge",
    "Ordinal",
    "Probit",
    "Quantile",
    "Sites",
    "Terms",
    "location_spread",
    "signs",
    "sites",
    "sites_by_autodiff",
]
