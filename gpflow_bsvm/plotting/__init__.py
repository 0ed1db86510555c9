"""Pictures of classifiers, drawn into the axes that they are given."""

from .boundary import decision_boundary
from .figures import figure
from .models import (
    bound_trace,
    calibration_before_after,
    hyperparameter_trace,
    relevance,
    relevance_bars,
)
from .rejection import accuracy_against_coverage
from .scores import (
    MOST_NUMBERS,
    RELIABILITY_BINS,
    attack_curve,
    confusion_matrix,
    elbo_trace,
    error_against_time,
    reliability_diagram,
)

__all__ = [
    "MOST_NUMBERS",
    "RELIABILITY_BINS",
    "accuracy_against_coverage",
    "attack_curve",
    "bound_trace",
    "calibration_before_after",
    "confusion_matrix",
    "decision_boundary",
    "elbo_trace",
    "error_against_time",
    "figure",
    "hyperparameter_trace",
    "relevance",
    "relevance_bars",
    "reliability_diagram",
]
