"""Bayesian SVMs and other classifiers by one protocol: same folds, scaling, inducing points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .registry import BASELINES, KernelSettings, default_baselines, make_baseline

if TYPE_CHECKING:
    from .protocol import Comparison, Settings

__all__ = [
    "BASELINES",
    "Comparison",
    "KernelSettings",
    "Settings",
    "default_baselines",
    "make_baseline",
]


def __getattr__(name: str) -> Any:
    """Import at first use, so that `gpflow-bsvm --help` does not wait for TensorFlow."""
    if name not in ("Comparison", "Settings"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import protocol

    return getattr(protocol, name)
