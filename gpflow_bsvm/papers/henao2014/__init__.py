"""Henao et al. (2014): the mode, which is the support vector machine, by an ECM."""

from .ecm import ECM

__all__ = ["ECM"]
