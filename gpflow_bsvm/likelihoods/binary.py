"""Base of all binary likelihoods: labels, link, prediction; the probit and the logistic."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.likelihoods import ScalarLikelihood

from .base import Classification
from .hooks import Sites
from .labels import check_binary_labels, signs

#: Phi(x / 1.702) is within .0095 of the logistic function (Camilli 1994).
LOGISTIC_SCALE = 1.702
#: For c below this, tanh(c / 2) / (2 c) is 1/4 up to rounding.
_SMALL = 1e-6


@check_shapes("x: [batch...]", "return: [batch...]")
def normal_log_cdf(x: tf.Tensor) -> tf.Tensor:
    """:return: log Phi(x), accurate in both tails; NaN for NaN (where `logerfc` is a number)."""
    return tf.where(tf.math.is_nan(x), x, tfp.math.logerfc(-x * np.sqrt(0.5)) - np.log(2))


@check_shapes("x: [batch...]", "return: [batch...]")
def normal_cdf(x: tf.Tensor) -> tf.Tensor:
    """:return: Phi(x), accurate in the left tail."""
    return 0.5 * tf.math.erfc(-x * np.sqrt(0.5))


@check_shapes("x: [batch...]", "return: [batch...]")
def normal_pdf(x: tf.Tensor) -> tf.Tensor:
    """:return: phi(x), the standard normal density."""
    return tf.exp(-0.5 * tf.square(x)) / np.sqrt(2 * np.pi)


@check_shapes("m: [batch...]", "s: [batch...]", "return: [batch...]")
def expected_ramp(m: tf.Tensor, s: tf.Tensor) -> tf.Tensor:
    """:return: E max(0, b), b ~ N(m, s^2)."""
    return m * normal_cdf(m / s) + s * normal_pdf(m / s)


@check_shapes("mean: [batch..., 1]", "variance: [batch..., 1]", "return: [batch..., 2]")
def both_sides(mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    """:return: P(b < 0) and P(b > 0), b ~ N(mean, variance), both accurate if small."""
    z = mean / tf.sqrt(variance)
    return normal_cdf(tf.concat([-z, z], axis=-1))


class BinaryLikelihood(Classification, ScalarLikelihood):
    r"""
    Base of the binary likelihoods: one latent function per column of Y, labels in {0, 1} (as
    GPflow's `Bernoulli`) or {-1, +1}.

    A pseudo-likelihood such as the hinge is not normalized: L(+1|f) + L(-1|f) varies with f.
    Training maximizes it through `log_prob` and `variational_expectations`; prediction uses a
    proper Bernoulli distribution,

        p(y = 1) = E Phi(g f + d) = Phi((g Fmu + d) / sqrt(1 + g^2 Fvar)).

    :ivar scale: g of the link.
    :ivar offset: d, see `Classification`.
    """

    neutral_link: ClassVar = {"scale": 1.0, "offset": 0.0}
    scale: Any
    offset: Any

    check_labels = staticmethod(check_binary_labels)

    def __init__(self, *, quadrature: Any = None) -> None:
        """:param quadrature: a `gpflow.quadrature.GaussianQuadrature`; None: 20 points."""
        super().__init__(quadrature=quadrature)

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return: [batch..., P]")
    def probit_argument(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: z with p(y = 1) = Phi(z), [..., L]."""
        # At a huge prior variance, cancellation may give a negative variance.
        variance = 1 + tf.square(self.scale) * tf.maximum(Fvar, 0)
        return (self.scale * Fmu + self.offset) / tf.sqrt(variance)

    @check_shapes("Fmu: [batch..., 1]", "Fvar: [batch..., 1]", "return: [batch..., 2]")
    def favoured(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(g f + d < 0) and P(g f + d > 0), f ~ N(Fmu, Fvar)."""
        return both_sides(self.scale * Fmu + self.offset, tf.square(self.scale) * Fvar)

    @inherit_check_shapes
    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: p(y = 1) at q(f) = N(Fmu, Fvar), [..., L]."""
        return normal_cdf(self.probit_argument(Fmu, Fvar))

    @inherit_check_shapes
    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        log_p = normal_log_cdf(signs(Y, Fmu) * self.probit_argument(Fmu, Fvar))
        return tf.reduce_sum(log_p, axis=-1)


class Probit(BinaryLikelihood):
    r"""
    p(y | f) = Phi(y f): GPflow's `Bernoulli` without its floor of 1e-3 on the probability. The
    floor makes the log-likelihood non-concave, so that natural gradients can leave the cone of
    positive definite precisions; without it they cannot.

    Expectations use GPflow's Gauss-Hermite quadrature, and sites automatic differentiation.
    """

    @inherit_check_shapes
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return normal_log_cdf(signs(Y, F) * F)


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
