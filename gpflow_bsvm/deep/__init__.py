"""Hybrids of a deep network and a Bayesian SVM, with kernels on network outputs."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .keep_best import KeepBest
from .kernel import DeepKernel, head, hybrid

__all__ = ["DeepKernel", "KeepBest", "head", "hybrid"]
