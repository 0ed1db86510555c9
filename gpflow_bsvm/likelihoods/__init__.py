"""Likelihoods: support vector machines' losses as densities of labels given f."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .base import sites, sites_by_autodiff
from .binary import BinaryLikelihood, Logistic, Probit
from .categorical import OneVsRest
from .crammer_singer import CrammerSinger
from .hinge import Hinge, HingeSum, Terms
from .hooks import Hooks, Sites
from .labels import signs
from .level_hinge import LevelHinge, OneVsRestLevelHinge
from .levels import Levels, location_spread
from .one_class import OneClass
from .ordinal import Ordinal
from .quantile import Quantile
from .regression import EpsilonInsensitive

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
