"""The logistic likelihood with closed-form sites, by Polya-Gamma augmentation."""

from __future__ import annotations

from typing import ClassVar

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from .binary import BinaryLikelihood
from .hooks import Sites
from .labels import signs

#: Phi(x / 1.702) is within .0095 of the logistic function (Camilli 1994).
LOGISTIC_SCALE = 1.702
#: For c below this, tanh(c / 2) / (2 c) is 1/4 up to rounding.
_SMALL = 1e-6


class Logistic(BinaryLikelihood):
    r"""
    p(y | f) = 1 / (1 + exp(-y f)), trained by the bound of its Polya-Gamma augmentation (Polson,
    Scott & Windle 2013; Wenzel et al. 2019; the bound itself is Jaakkola & Jordan's of 2000). With
    optimal local variables and c = sqrt(Fmu^2 + Fvar),

        E log p >= y Fmu / 2 - c / 2 - log(1 + exp(-c)).

    It serves for comparisons.

    Prediction is by the probit link of `BinaryLikelihood` with scale 1 / 1.702, the normal
    distribution function closest to the logistic function.
    """

    sites_are_slopes = True
    neutral_link: ClassVar = {"scale": 1 / LOGISTIC_SCALE, "offset": 0.0}

    @inherit_check_shapes
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return -tf.nn.softplus(-signs(Y, F) * F)

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        c = self._root(Fmu, Fvar)
        return tf.reduce_sum(0.5 * (signs(Y, Fmu) * Fmu - c) - tf.nn.softplus(-c), axis=-1)

    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """
        The Gaussian sites (`gpflow_bsvm.likelihoods.sites`) have a closed form:

            w = tanh(c / 2) / (2 c) = E omega, omega ~ PG(1, c),    r = y / 2.
        """
        c = self._root(Fmu, Fvar)
        return Sites(tf.tanh(c / 2) / (2 * c), signs(Y, Fmu) / 2)

    @inherit_check_shapes
    def point_sites(self, F: TensorType, Y: TensorType) -> Sites:
        """:return: the sites at Fvar = 0, as in expectation maximization."""
        return self.sites(F, F, tf.zeros_like(F), Y)

    def _root(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        return tf.sqrt(tf.maximum(tf.square(Fmu) + Fvar, _SMALL**2))
