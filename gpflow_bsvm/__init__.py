"""Bayesian support vector machines for GPflow."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .optional import check_versions
from .version import __version__

if TYPE_CHECKING:  # see __getattr__
    from . import (
        active,
        adversarial,
        cluster,
        data,
        deep,
        files,
        inducing_points,
        inference,
        likelihoods,
        metrics,
        model_selection,
        models,
        papers,
        plotting,
        prediction,
        priors,
        sampling,
        saving,
    )
    from .estimators import BSVMClassifier, BSVMRegressor, OneClassBSVM
    from .inference.fit import fit
    from .saving import export, load, save

__all__ = [
    "BSVMClassifier",
    "BSVMRegressor",
    "OneClassBSVM",
    "__version__",
    "active",
    "adversarial",
    "cluster",
    "data",
    "deep",
    "export",
    "files",
    "fit",
    "inducing_points",
    "inference",
    "likelihoods",
    "load",
    "metrics",
    "model_selection",
    "models",
    "papers",
    "plotting",
    "prediction",
    "priors",
    "sampling",
    "save",
    "saving",
]

#: The modules of public names; a name that is not listed is itself a module.
_HOMES = {
    "BSVMClassifier": "estimators",
    "BSVMRegressor": "estimators",
    "OneClassBSVM": "estimators",
    "export": "saving",
    "fit": "inference",
    "load": "saving",
    "save": "saving",
}


def __getattr__(name: str) -> Any:
    """Import a name at its first use, so that `gpflow-bsvm --help` need not wait for TensorFlow."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_versions()
    from .quiet import plain_docstrings

    with plain_docstrings():
        module = importlib.import_module(f".{_HOMES.get(name, name)}", __name__)
    return getattr(module, name) if name in _HOMES else module


def __dir__() -> list[str]:
    """:return: the public names."""
    return __all__
