"""Pictures of predictions, drawn into the axes that they are given."""

from .figures import figure
from .scores import accuracy_against_coverage, reliability_diagram

__all__ = ["accuracy_against_coverage", "figure", "reliability_diagram"]
