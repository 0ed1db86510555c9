"""How q is found: project -> localise -> accumulate -> solve. An algorithm names no likelihood."""

from .cavi import CAVI
from .ecm import ECM
from .fit import fit
from .gibbs import Gibbs
from .history import History
from .hmc import HMC
from .ml2 import ML2
from .samples import Interrupted, Samples
from .schedules import Adaptive, RobbinsMonro
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
    "Interrupted",
    "Gibbs",
    "History",
    "RobbinsMonro",
    "Samples",
    "Streaming",
    "fit",
]
