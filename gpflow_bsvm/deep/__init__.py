"""Kernels on networks: hybrids of a deep network and a Bayesian SVM."""

from .hybrid import feature_points, head, hybrid
from .keep_best import KeepBest
from .kernel import DeepKernel, FeaturePoints

__all__ = ["DeepKernel", "FeaturePoints", "KeepBest", "feature_points", "head", "hybrid"]
