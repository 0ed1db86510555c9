"""Bayesian support vector machines for GPflow."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from . import (
        data,
        inducing_points,
        inference,
        likelihoods,
        model_selection,
        models,
        plotting,
        prediction,
        priors,
    )
    from .estimators import BSVMClassifier
    from .inference import fit

__all__ = [
    "BSVMClassifier",
    "__version__",
    "data",
    "fit",
    "inducing_points",
    "inference",
    "likelihoods",
    "model_selection",
    "models",
    "plotting",
    "prediction",
    "priors",
]

#: Where names come from that are not modules of this package.
_HOMES = {"BSVMClassifier": "estimators", "fit": "inference"}


def __getattr__(name: str) -> Any:
    """Import at first use, so that `gpflow-bsvm --help` does not wait for TensorFlow."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{_HOMES.get(name, name)}", __name__)
    return getattr(module, name) if name in _HOMES else module


def __dir__() -> list[str]:
    """:return: the public names."""
    return __all__
