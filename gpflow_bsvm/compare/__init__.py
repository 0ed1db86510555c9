"""One fair protocol for Bayesian SVMs and their peers: same folds, scaling, kernel, inducing points."""

from .peers import DEFAULT_PEERS, PEERS, KernelSettings, Peer, Skipped
from .protocol import Comparison, Row, Settings, Trace, binary_labels

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
