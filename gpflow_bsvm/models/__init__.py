"""Where q lives, and how x is projected."""

from .sparse import BSVM

__all__ = ["BSVM"]
