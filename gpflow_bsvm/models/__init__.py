"""Where q lives, and how x is projected."""

from .dual import DualBSVM
from .sparse import BSVM

__all__ = ["BSVM", "DualBSVM"]
