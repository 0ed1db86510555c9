"""Pictures of classifiers, drawn into the axes that they are given."""

from .boundary import decision_boundary
from .figures import figure
from .models import bound_trace, hyperparameter_trace
from .scores import (
    accuracy_against_coverage,
    attack_curve,
    confusion_matrix,
    elbo_trace,
    error_against_time,
    reliability_diagram,
)

__all__ = [
    "accuracy_against_coverage",
    "attack_curve",
    "bound_trace",
    "confusion_matrix",
    "decision_boundary",
    "elbo_trace",
    "error_against_time",
    "figure",
    "hyperparameter_trace",
    "reliability_diagram",
]
