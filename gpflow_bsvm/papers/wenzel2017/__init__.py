"""Wenzel et al. (2017): what only the paper needs."""

from .dual import DualBSVM

__all__ = ["DualBSVM"]
