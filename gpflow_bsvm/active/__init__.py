"""Active learning: select the rows of a pool to label."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .kernels import best_kernel
from .policies import POLICIES

__all__ = ["POLICIES", "best_kernel"]
