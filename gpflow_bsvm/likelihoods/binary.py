"""What all binary likelihoods share: labels, link, prediction; and two that are no hinges."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType
from gpflow.likelihoods import ScalarLikelihood

from .base import Classification, Sites
from .labels import check_binary_labels, signs

LINKS = ("probit", "wenzel2017")
#: Phi(x / 1.702) is within .0095 of the logistic function (Camilli 1994).
LOGISTIC_SCALE = 1.702
#: For a logistic's c below this, tanh(c / 2) / (2 c) is 1/4 to rounding.
_SMALL = 1e-6


def normal_log_cdf(x: tf.Tensor) -> tf.Tensor:
    """:return: log Phi(x), accurate in both tails; NaN for NaN (`logerfc` gives a number)."""
    return tf.where(tf.math.is_nan(x), x, tfp.math.logerfc(-x * np.sqrt(0.5)) - np.log(2))


def normal_cdf(x: tf.Tensor) -> tf.Tensor:
    """:return: Phi(x), accurate in the left tail."""
    return 0.5 * tf.math.erfc(-x * np.sqrt(0.5))


def normal_pdf(x: tf.Tensor) -> tf.Tensor:
    """:return: phi(x), the standard normal density."""
    return tf.exp(-0.5 * tf.square(x)) / np.sqrt(2 * np.pi)


def expected_ramp(m: tf.Tensor, s: tf.Tensor) -> tf.Tensor:
    """:return: E max(0, b), b ~ N(m, s^2)."""
    return m * normal_cdf(m / s) + s * normal_pdf(m / s)


class BinaryLikelihood(Classification, ScalarLikelihood):
    r"""
    Base of the binary likelihoods: one latent function per column of Y, labels in {0, 1} (as
    GPflow's `Bernoulli`) or {-1, +1}.

    A pseudo-likelihood such as the hinge is not normalised: L(+1|f) + L(-1|f) is not constant in
    f. `log_prob` and `variational_expectations` therefore speak of the pseudo-likelihood, which
    is what training maximises, while prediction is a proper Bernoulli distribution by a link:

        "probit":      p(y=1) = Phi(Fmu / sqrt(1 + Fvar)),
        "wenzel2017":  p(y=1) = Phi(Fmu / (1 + Fvar)), eq. 13 of Wenzel et al. (2017) without the
                       root, as printed, and with one sign mended: there q's own part of Fvar is
                       subtracted, which can make a variance negative; here it is added. Only for
                       reproducing that paper's tables,

    whichever encoding the labels have. Both are of g f + d instead of f.

    :ivar scale: g of the link, and
    :ivar offset: d, see `Classification`.
    """

    neutral_link: ClassVar = {"scale": 1.0, "offset": 0.0}
    scale: Any
    offset: Any

    def __init__(self, link: str = "probit", **kwargs: Any) -> None:
        """
        :param link: "probit" or "wenzel2017".
        :raise ValueError: for any other link.
        """
        super().__init__(**kwargs)
        if link not in LINKS:
            raise ValueError(f"link must be one of {LINKS}, got {link!r}")
        self.link = link

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """
        Check the labels of a training set, or of a minibatch: that may hold one class only.

        :raise ValueError: unless Y holds both classes, in one encoding: {0, 1} or {-1, +1}.
        """
        check_binary_labels(Y, minibatch=minibatch)

    def probit_argument(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: z with p(y = 1) = Phi(z), as Fmu [..., L]."""
        # Where a huge prior variance cancels, rounding may leave less than 0.
        variance = 1 + tf.square(self.scale) * tf.maximum(Fvar, 0)
        deviation = variance if self.link == "wenzel2017" else tf.sqrt(variance)
        return (self.scale * Fmu + self.offset) / deviation

    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: p(y = 1) at q(f) = N(Fmu, Fvar), as Fmu."""
        return normal_cdf(self.probit_argument(Fmu, Fvar))

    def invlink(self, F: TensorType) -> tf.Tensor:
        """:return: p(y = 1 | F) = Phi(g F + d), as F."""
        return self.probabilities(F, tf.zeros_like(F))

    @inherit_check_shapes
    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        log_p = normal_log_cdf(signs(Y, Fmu) * self.probit_argument(Fmu, Fvar))
        return tf.reduce_sum(log_p, axis=-1)


class Probit(BinaryLikelihood):
    r"""
    p(y | f) = Phi(y f): what `gpflow.likelihoods.Bernoulli` computes, without its floor of 1e-3
    on the probability. The floor makes the log-likelihood non-concave, so that natural gradients
    can leave the cone of positive definite precisions; without it they cannot.

    Expectations by GPflow's Gauss-Hermite quadrature, sites by automatic differentiation: this
    likelihood shows what the package's engine does for a likelihood that it knows nothing about.
    """

    @inherit_check_shapes
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return normal_log_cdf(signs(Y, F) * F)


class PolyaGammaLogistic(BinaryLikelihood):
    r"""
    p(y | f) = 1 / (1 + exp(-y f)), trained by the bound of its Polya-Gamma augmentation (Polson,
    Scott & Windle 2013; Wenzel et al. 2019; the bound itself is Jaakkola & Jordan's of 2000). Its
    local variables maximised out, with c = sqrt(Fmu^2 + Fvar),

        E log p >= y Fmu / 2 - c / 2 - log(1 + exp(-c)).

    A comparator: to the engine it is one more pair of sites.

    Prediction is by the probit link of `BinaryLikelihood` with scale 1 / 1.702, the normal
    distribution function nearest to the logistic one.
    """

    #: Sites at variance 0 are those of expectation maximisation, and all are derivatives.
    has_point_sites = sites_are_slopes = True
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
        The Gaussian sites (`gpflow_bsvm.likelihoods.sites`) in closed form:

            w = tanh(c / 2) / (2 c) = E omega, omega ~ PG(1, c),    r = y / 2.
        """
        c = self._root(Fmu, Fvar)
        return Sites(tf.tanh(c / 2) / (2 * c), signs(Y, Fmu) / 2)

    def _root(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        return tf.sqrt(tf.maximum(tf.square(Fmu) + Fvar, _SMALL**2))
