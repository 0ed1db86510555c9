"""The scikit-learn face of the package."""

from .classifier import BSVMClassifier

__all__ = ["BSVMClassifier"]
