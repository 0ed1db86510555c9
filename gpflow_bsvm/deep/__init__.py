"""Hybrids of a deep network and a Bayesian SVM, by kernels on networks."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .hybrid import head, hybrid
from .keep_best import KeepBest
from .kernel import DeepKernel

__all__ = ["DeepKernel", "KeepBest", "head", "hybrid"]
