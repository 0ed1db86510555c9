"""Algorithms that fit q, for any likelihood: they project, localise, accumulate and solve."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .cavi import CAVI, Streaming
from .ecm import ECM
from .fit import fit
from .minibatches import SVI, Adaptive, RobbinsMonro
from .ml2 import ML2
from .run import History
from .vem import VEM

__all__ = [
    "CAVI",
    "ECM",
    "ML2",
    "SVI",
    "VEM",
    "Adaptive",
    "History",
    "RobbinsMonro",
    "Streaming",
    "fit",
]
