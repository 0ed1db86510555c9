"""Predictions of a fitted model: marginals, probabilities, their calibration and uncertainty.

The model may be an estimator, such as `gpflow_bsvm.BSVMClassifier`; rows are then the user's, not
scaled, with labels as they are.
"""

from .calibration import calibrate, leave_one_out, leave_one_out_density
from .joint import draw_f, draw_probabilities, expected_error
from .marginals import (
    alpha,
    predict_log_density,
    predict_marginals,
    predict_probabilities,
    soft_support_vectors,
)
from .uncertainty import (
    latent_variance,
    margin,
    mutual_information,
    predictive_entropy,
    variation_ratio,
)

__all__ = [
    "alpha",
    "calibrate",
    "draw_f",
    "draw_probabilities",
    "expected_error",
    "latent_variance",
    "leave_one_out",
    "leave_one_out_density",
    "margin",
    "mutual_information",
    "predict_log_density",
    "predict_marginals",
    "predict_probabilities",
    "predictive_entropy",
    "soft_support_vectors",
    "variation_ratio",
]
