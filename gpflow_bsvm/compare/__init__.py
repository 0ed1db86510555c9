"""Bayesian SVMs and other classifiers by one protocol: same folds, scaling, inducing points."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .registry import (
    BASELINES,
    Entry,
    KernelSettings,
    Skipped,
    default_baselines,
    make_baseline,
)

if TYPE_CHECKING:
    from .machine import provenance
    from .protocol import Comparison, FoldScore, Settings, Trace
    from .splits import Fold, class_labels, folds

__all__ = [
    "BASELINES",
    "Comparison",
    "Entry",
    "Fold",
    "FoldScore",
    "KernelSettings",
    "Settings",
    "Skipped",
    "Trace",
    "class_labels",
    "default_baselines",
    "folds",
    "make_baseline",
    "provenance",
]

#: Where names come from that need more than the standard library.
_HOMES = dict.fromkeys(["Comparison", "FoldScore", "Settings", "Trace"], "protocol")
_HOMES |= dict.fromkeys(["Fold", "class_labels", "folds"], "splits") | {"provenance": "machine"}


def __getattr__(name: str) -> Any:
    """Import at first use, so that `gpflow-bsvm --help` does not wait for TensorFlow."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
