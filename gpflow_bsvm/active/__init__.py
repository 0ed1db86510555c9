"""Active learning: select the rows of a pool to label."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .kernels import best_kernel, kernel_multiples
from .policies import POLICIES, Policy

__all__ = ["POLICIES", "Policy", "best_kernel", "kernel_multiples"]
