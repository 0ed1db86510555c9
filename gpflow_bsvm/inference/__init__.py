"""How q is found: project -> localise -> accumulate -> solve. An algorithm names no likelihood."""

from .auto import fit
from .cavi import CAVI
from .draws import Draws
from .ecm import ECM
from .gibbs import Gibbs
from .history import History
from .hmc import HMC
from .ml2 import ML2
from .predict import predict_log_density, predict_marginals, predict_probabilities
from .svi import SVI
from .vem import VEM

__all__ = [
    "CAVI",
    "ECM",
    "HMC",
    "ML2",
    "SVI",
    "Draws",
    "Gibbs",
    "History",
    "VEM",
    "fit",
    "predict_log_density",
    "predict_marginals",
    "predict_probabilities",
]
