"""How q is found: project -> localise -> accumulate -> solve. An algorithm names no likelihood."""

from .cavi import CAVI
from .class_by_class import ClassByClass
from .ecm import ECM
from .fit import fit
from .gibbs import Gibbs
from .history import History
from .hmc import HMC, StaticHMC
from .keep_best import KeepBest
from .ml2 import ML2
from .nested import NestedLoop
from .samples import Interrupted, Samples
from .schedules import Adaptive, Constant, RobbinsMonro
from .streaming import Streaming
from .svi import SVI
from .vem import VEM

__all__ = [
    "CAVI",
    "ECM",
    "HMC",
    "ML2",
    "SVI",
    "VEM",
    "Adaptive",
    "ClassByClass",
    "Constant",
    "Interrupted",
    "KeepBest",
    "NestedLoop",
    "Gibbs",
    "History",
    "RobbinsMonro",
    "Samples",
    "StaticHMC",
    "Streaming",
    "fit",
]
