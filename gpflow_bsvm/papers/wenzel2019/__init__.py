"""Wenzel et al. (2019): logistic classification by Polya-Gamma augmentation, to compare with."""

from .logistic import PolyaGammaLogistic

__all__ = ["PolyaGammaLogistic"]
