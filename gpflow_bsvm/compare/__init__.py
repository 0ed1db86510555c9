"""Compare Bayesian SVMs and other models with the same folds, scaling and inducing points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .registry import BASELINES, default_baselines
from .task import KernelSettings

if TYPE_CHECKING:  # see __getattr__
    from .gp_baselines import make_baseline
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
    if name not in ("Comparison", "Settings", "make_baseline"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import protocol

    return getattr(protocol, name)
