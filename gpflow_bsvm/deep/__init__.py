"""Hybrids of a deep network and a Bayesian SVM, by kernels on networks."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .hybrid import head, hybrid
from .keep_best import KeepBest
from .kernel import DeepKernel, FeaturePoints

__all__ = ["DeepKernel", "FeaturePoints", "KeepBest", "head", "hybrid"]
