"""The hinge with the class probabilities printed in Wenzel et al. (2017)."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import TensorType

from ... import likelihoods


class Hinge(likelihoods.Hinge):
    """
    `gpflow_bsvm.likelihoods.Hinge` with p(y = 1) = Phi(Fmu / (1 + Fvar)): eq. 13 of the paper as
    printed, without the root, except for one sign: q's own part of Fvar is added. (Subtracting it,
    as printed, can make a variance negative.) Use it only to reproduce the paper's tables.
    """

    def probit_argument(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: z with p(y = 1) = Phi(z), [..., L]."""
        variance = 1 + tf.square(self.scale) * tf.maximum(Fvar, 0)
        return (self.scale * Fmu + self.offset) / variance
