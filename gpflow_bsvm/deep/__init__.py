"""Kernels on networks: hybrids of a deep network and a Bayesian SVM."""

from .hybrid import head, hybrid
from .keep_best import KeepBest
from .kernel import DeepKernel, FeaturePoints

__all__ = ["DeepKernel", "FeaturePoints", "KeepBest", "head", "hybrid"]
