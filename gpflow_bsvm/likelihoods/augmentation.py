"""Hinges as scale mixtures of Gaussians: what is to be had of their local variables."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType

from .penalty import Penalized, Seen


class Moments(NamedTuple):
    """Of b, of which the loss is max(0, b)."""

    mean: tf.Tensor  #: [..., K], E b
    square: tf.Tensor  #: [..., K], E b^2


class Augmented(Penalized):
    r"""
    A pseudo-likelihood of K losses max(0, b) a row, with local variables lambda (Polson & Scott
    2011): with a = penalty / 2,

        exp(-penalty max(0, b)) = int_0^inf p(y, lambda | f) dlambda,
        p(y, lambda | f) = a (2 pi lambda)^(-1/2) exp(-a b - (a^2 lambda + b^2 / lambda) / 2).

    What is here holds for any q(f), whichever bound is trained.
    """

    def moments(self, seen: Seen) -> Moments:
        """:return: of b under q(f)."""
        raise NotImplementedError

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return: [batch..., K]")
    def alpha(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> tf.Tensor:
        """
        :return: alpha = E b^2 of each loss, the parameter of the best local variable
            q(lambda) = GIG(1/2, (penalty/2)^2, alpha): for two classes b = 1 - y f and alpha =
            (1 - y Fmu)^2 + Fvar (Wenzel et al. 2017, section 4.1).
        """
        return self.moments(self._seen(Fmu, Fvar, Y)).square

    @check_shapes(
        "alpha: [batch..., K]",
        "Fmu: [batch..., L]",
        "Fvar: [batch..., L]",
        "return: [batch...]",
    )
    def bound_at(
        self, alpha: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        """
        The augmented bound at local variables of any parameter (Wenzel et al. 2017, eq. 8; Wistuba
        & Rawat 2018, eq. 12 with the sign mended), q(lambda) = GIG(1/2, a^2, alpha):

            E_q [log p(y, lambda | f) - log q(lambda)]
                = -a E b - (a / 2) (sqrt(alpha) + E b^2 / sqrt(alpha)),

        summed over the losses of a row. It is largest at alpha = E b^2, `alpha`, where it is what
        bound="augmented" trains: -a E b - a sqrt(E b^2).

        :param alpha: positive.
        """
        mean, square = self.moments(self._seen(Fmu, Fvar, Y))
        root = tf.sqrt(tf.cast(alpha, mean.dtype))
        terms = -self.penalty / 2 * (mean + (root + square / root) / 2)
        return tf.reduce_sum(self.log_kappa() + terms, axis=-1)
