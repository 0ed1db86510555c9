"""Seeger (2000): the normalized hinge, and q by factor analysis."""

from .factor import FactorVGP
from .nested import NestedLoop
from .normalized_hinge import NormalizedHinge

__all__ = ["FactorVGP", "NestedLoop", "NormalizedHinge"]
