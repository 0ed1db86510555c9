"""Models: a Gaussian q, and features of the inputs."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .batch import BatchBSVM
from .linear import LinearBSVM
from .sparse import BSVM

__all__ = ["BSVM", "BatchBSVM", "LinearBSVM"]
