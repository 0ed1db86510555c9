"""Bayesian SVMs and their peers by one protocol: same folds, scaling, kernel, inducing points."""

from .baselines import PEERS, Entry, Peer, Skipped, default_peers
from .labels import class_labels
from .protocol import Comparison, Row, Settings, Trace
from .training import KernelSettings

__all__ = [
    "PEERS",
    "Comparison",
    "Entry",
    "KernelSettings",
    "Peer",
    "Row",
    "Settings",
    "Skipped",
    "Trace",
    "class_labels",
    "default_peers",
]
