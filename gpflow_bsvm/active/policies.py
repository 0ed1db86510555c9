"""Which rows to ask about: a policy is a plain function, so yours can be one too.

A loop is five lines (docs/lab/active-learning.md), or one of scikit-activeml's, whose strategies
take a `gpflow_bsvm.active.scikit_activeml.ModelClassifier`.
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

#: A function of model and X [N, D]: scores [N], of which the largest are asked about.
Policy = Callable[[Model, AnyNDArray], AnyNDArray]


#: By name; see `gpflow_bsvm.prediction` for what they compute.
POLICIES: dict[str, Policy] = {
    "variation_ratio": variation_ratio,
    "entropy": predictive_entropy,
    "margin": lambda model, X: -margin(model, X),
    "latent_variance": latent_variance,
    "bald": mutual_information,
}
