"""Logistic classification by the Polya-Gamma augmentation, for comparison."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from .base import Sites
from .binary import BinaryLikelihood, check_site_shapes, signs

#: Phi(x / 1.702) is within .0095 of the logistic function (Camilli 1994).
LOGISTIC_SCALE = 1.702
#: Below, tanh(c / 2) / (2 c) is 1/4 to rounding.
_SMALL = 1e-6


class PolyaGammaLogistic(BinaryLikelihood):
    r"""
    p(y | f) = 1 / (1 + exp(-y f)), trained by the bound of its Polya-Gamma augmentation (Polson,
    Scott & Windle 2013; Wenzel et al. 2019; the bound itself is Jaakkola & Jordan's of 2000). Its
    local variables maximised out, with c = sqrt(Fmu^2 + Fvar),

        E log p >= y Fmu / 2 - c / 2 - log(1 + exp(-c)).

    A comparator: to the engine it is one more pair of sites.

    Prediction is by the probit link of `BinaryLikelihood` with slope 1 / 1.702, the normal
    distribution function nearest to the logistic one.
    """

    #: Sites at variance 0 are those of expectation maximisation.
    has_point_sites = True

    def __init__(self, **kwargs: Any) -> None:
        """:param kwargs: as in `gpflow.likelihoods.ScalarLikelihood`."""
        super().__init__(**kwargs)
        self.slope.assign(1 / LOGISTIC_SCALE)

    @inherit_check_shapes
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return -tf.nn.softplus(-signs(Y) * F)

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        c = self._root(Fmu, Fvar)
        return tf.reduce_sum(0.5 * (signs(Y) * Fmu - c) - tf.nn.softplus(-c), axis=-1)

    @check_site_shapes
    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """
        The Gaussian sites (`gpflow_bsvm.likelihoods.sites`) in closed form:

            w = tanh(c / 2) / (2 c) = E omega, omega ~ PG(1, c),    r = y / 2.
        """
        c = self._root(Fmu, Fvar)
        return tf.tanh(c / 2) / (2 * c), signs(Y) / 2

    def _root(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        return tf.sqrt(tf.maximum(tf.square(Fmu) + Fvar, _SMALL**2))
