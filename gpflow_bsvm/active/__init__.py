"""Active learning: select the rows of a pool to label."""

from __future__ import annotations

from .. import quiet  # isort: skip  # noqa: F401 - imports GPflow before others do

from collections.abc import Callable

from gpflow.base import AnyNDArray

from ..engine.contracts import Model
from ..prediction import uncertainty
from .kernels import best_kernel

__all__ = ["POLICIES", "best_kernel"]

#: Policies by name: functions in `gpflow_bsvm.prediction` that score rows X [N, D] for a model. A
#: loop that queries the rows with the largest scores takes five lines
#: (docs/lab/active-learning.md). Alternatively, use scikit-activeml's strategies with a
#: `gpflow_bsvm.active.scikit_activeml.ModelClassifier`.
POLICIES: dict[str, Callable[[Model, AnyNDArray], AnyNDArray]] = {
    "variation_ratio": uncertainty.variation_ratio,
    "entropy": uncertainty.predictive_entropy,
    "margin": lambda model, X: -uncertainty.margin(model, X),
    "latent_variance": uncertainty.latent_variance,
    "bald": uncertainty.mutual_information,
}
