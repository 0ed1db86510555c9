"""How q is found: project -> localise -> accumulate -> solve. An algorithm names no likelihood."""

from .auto import fit
from .cavi import CAVI
from .ecm import ECM
from .history import History
from .ml2 import ML2
from .predict import predict_log_density, predict_marginals, predict_probabilities
from .svi import SVI
from .vem import VEM

__all__ = [
    "CAVI",
    "ECM",
    "ML2",
    "SVI",
    "History",
    "VEM",
    "fit",
    "predict_log_density",
    "predict_marginals",
    "predict_probabilities",
]
