"""What a fitted model says of x: marginals, probabilities, their calibration and their doubt.

The model may be a `gpflow_bsvm.BSVMClassifier`; rows are then those of its user, not scaled, with
labels as they are.
"""

from .batches import batch_bald, joint_mutual_information
from .calibration import calibrate, leave_one_out, leave_one_out_density
from .doubt import latent_variance, margin
from .joint import draw_f, draw_probabilities, expected_error
from .local_variables import (
    alpha,
    augmented_elbo,
    local_distribution,
    local_moments,
    predict_f_given,
    soft_support_vectors,
)
from .marginals import predict_log_density, predict_marginals, predict_probabilities
from .uncertainty import mutual_information, predictive_entropy, variation_ratio

__all__ = [
    "alpha",
    "augmented_elbo",
    "batch_bald",
    "calibrate",
    "draw_f",
    "draw_probabilities",
    "expected_error",
    "joint_mutual_information",
    "latent_variance",
    "leave_one_out",
    "leave_one_out_density",
    "local_distribution",
    "local_moments",
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
