"""Predictions of a fitted model: marginals, probabilities, their calibration and uncertainty.

The model may also be an estimator, such as `gpflow_bsvm.BSVMClassifier`, with the user's unscaled
rows and labels; its `class_weight` then also multiplies weights, as in its fit. For a
`gpflow_bsvm.BSVMRegressor`, moments and densities are in units of y; local variables, their
`penalty` and the augmented ELBO belong to its model, whose y is standardized.
"""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .calibration import calibrate, leave_one_out, leave_one_out_density
from .local_variables import (
    LocalVariables,
    augmented_elbo,
    local_variables,
    predict_f_given,
    soft_support_vectors,
)
from .marginals import predict_log_density, predict_marginals, predict_probabilities
from .uncertainty import (
    draw_f,
    draw_probabilities,
    expected_error,
    latent_variance,
    margin,
    mutual_information,
    predictive_entropy,
    variation_ratio,
)

__all__ = [
    "LocalVariables",
    "augmented_elbo",
    "calibrate",
    "draw_f",
    "draw_probabilities",
    "expected_error",
    "latent_variance",
    "leave_one_out",
    "leave_one_out_density",
    "local_variables",
    "margin",
    "mutual_information",
    "predict_f_given",
    "predict_log_density",
    "predict_marginals",
    "predict_probabilities",
    "predictive_entropy",
    "soft_support_vectors",
    "variation_ratio",
]
