"""Policies of active learning: plain functions that score rows.

A loop takes five lines (docs/lab/active-learning.md). Alternatively, use scikit-activeml's
strategies with a `gpflow_bsvm.active.scikit_activeml.ModelClassifier`.
"""

from __future__ import annotations

from collections.abc import Callable

from gpflow.base import AnyNDArray

from ..engine.contracts import Model
from ..prediction.uncertainty import (
    latent_variance,
    margin,
    mutual_information,
    predictive_entropy,
    variation_ratio,
)

#: A function of model and X [N, D] that returns scores [N]; the largest are queried.
Policy = Callable[[Model, AnyNDArray], AnyNDArray]


#: Policies by name, defined in `gpflow_bsvm.prediction`.
POLICIES: dict[str, Policy] = {
    "variation_ratio": variation_ratio,
    "entropy": predictive_entropy,
    "margin": lambda model, X: -margin(model, X),
    "latent_variance": latent_variance,
    "bald": mutual_information,
}
