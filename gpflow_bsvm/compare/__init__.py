"""Bayesian SVMs and their peers by one protocol: same folds, scaling, kernel, inducing points."""

from .peers import DEFAULT_PEERS, PEERS, Peer, Skipped
from .protocol import Comparison, Row, Settings, Trace, binary_labels
from .training import KernelSettings

__all__ = [
    "DEFAULT_PEERS",
    "PEERS",
    "Comparison",
    "KernelSettings",
    "Peer",
    "Row",
    "Settings",
    "Skipped",
    "Trace",
    "binary_labels",
]
