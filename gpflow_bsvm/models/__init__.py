"""Models: where q lives, and how x is projected."""

from .batch import BatchBSVM
from .linear import LinearBSVM
from .sparse import BSVM

__all__ = ["BSVM", "BatchBSVM", "LinearBSVM"]
