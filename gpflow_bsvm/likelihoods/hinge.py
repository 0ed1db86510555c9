"""The binary Bayesian SVM: the hinge loss as a pseudo-likelihood."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType

from .base import VARIANCE_FLOOR, Sites
from .binary import (
    BinaryLikelihood,
    check_site_shapes,
    expected_ramp,
    normal_cdf,
    normal_pdf,
    signs,
)
from .penalty import Penalized

BOUNDS = ("augmented", "exact")


class Hinge(Penalized, BinaryLikelihood):
    r"""
    The pseudo-likelihood whose mode is the support vector machine,

        L(y | f) = exp(-penalty max(0, 1 - y f)),

    (Wenzel et al. 2017, eq. 2, with penalty = 2; Polson & Scott 2011). With b = 1 - y f,
    m = E b = 1 - y Fmu, v = Fvar, a = penalty / 2 and z = m / sqrt(v), training maximises

        bound="augmented":  E log L >= -a m - a sqrt(m^2 + v)
            the papers' bound with its local variables maximised out (Wenzel et al., eq. 8, with
            alpha = m^2 + v). Its natural-gradient step is the papers' coordinate ascent.
        bound="exact":      E log L  = -penalty (m Phi(z) + sqrt(v) phi(z))
            the expectation itself (Seeger 2000): tighter by at most 0.125 penalty sqrt(v) per
            datum, with Newton-like steps that converge in a tenth of the sweeps.

    See `BinaryLikelihood` for labels, link and what is normalised, `Penalized` for `penalty` (the
    SVM's C for a unit prior variance) and `normalizer`.
    """

    def __init__(
        self,
        penalty: float = 2.0,
        bound: str = "augmented",
        *,
        link: str = "probit",
        normalizer: bool = False,
        **kwargs: Any,
    ) -> None:
        """
        :param penalty: slope of the loss, positive.
        :param bound: "augmented" or "exact".
        :param link: "probit" or "published", see `BinaryLikelihood`.
        :param normalizer: whether training counts kappa = 1 / (1 + exp(-2 penalty)).
        :raise ValueError: for another bound or link, or a penalty that is not positive and finite.
        """
        super().__init__(link=link, **kwargs)
        if bound not in BOUNDS:
            raise ValueError(f"bound must be one of {BOUNDS}, got {bound!r}")
        self.bound = bound
        self._set_penalty(penalty, normalizer, 2)

    @property
    def has_point_sites(self) -> bool:
        """:return: whether sites at variance 0 are those of expectation maximisation."""
        return self.bound == "augmented"

    @inherit_check_shapes
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return self.log_kappa() - self.penalty * tf.nn.relu(1 - signs(Y) * F)

    @check_shapes(
        "Fmu: [batch..., L]",
        "Fvar: [batch..., L]",
        "Y: [batch..., L]",
        "return: [batch..., L]",
    )
    def alpha(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> tf.Tensor:
        """
        :return: alpha = E (1 - y f)^2 = (1 - y Fmu)^2 + Fvar, the parameter of the local variable
            q(lambda) = GIG(1/2, (penalty/2)^2, alpha) (Wenzel et al. 2017, section 4.1).
        """
        variance = tf.maximum(tf.convert_to_tensor(Fvar), VARIANCE_FLOOR)
        return tf.square(1 - signs(Y) * Fmu) + variance

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        m = 1 - signs(Y) * Fmu
        if self.bound == "augmented":
            loss = 0.5 * (m + tf.sqrt(self.alpha(Fmu, Fvar, Y)))
        else:
            s = tf.sqrt(tf.maximum(Fvar, VARIANCE_FLOOR))
            loss = expected_ramp(m, s)
        return tf.reduce_sum(self.log_kappa() - self.penalty * loss, axis=-1)

    @check_site_shapes
    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """
        The Gaussian sites (`gpflow_bsvm.likelihoods.sites`) in closed form:

            augmented:  w = a / sqrt(alpha),            r = y (a + w)   (Wenzel et al., eq. 9-10)
            exact:      w = penalty phi(z) / sqrt(v),   r = y penalty Phi(z) + w Fmu
        """
        y = signs(Y)
        if self.bound == "augmented":
            a = self.penalty / 2
            w = a / tf.sqrt(self.alpha(Fmu, Fvar, Y))
            return w, y * (a + w)
        s = tf.sqrt(tf.maximum(Fvar, VARIANCE_FLOOR))
        z = (1 - y * Fmu) / s
        w = self.penalty * normal_pdf(z) / s
        return w, y * self.penalty * normal_cdf(z) + w * Fmu

    def draw_sites(self, F: tf.Tensor, Y: tf.Tensor, seed: tf.Tensor) -> Sites:
        """
        Draw the local variables given f, 1 / lambda ~ inverse Gaussian(a / |1 - y f|, a^2) (Polson
        & Scott 2011), whichever bound is trained.

        :param F: [..., N, L], and Y: [N, L].
        :param seed: of TensorFlow's stateless draws, [2].
        :return: the sites of these: w = 1 / lambda and r = y (a + w), both as F.
        """
        y, a = signs(Y), self.penalty / 2
        distance = tf.maximum(tf.abs(1 - y * F), VARIANCE_FLOOR**0.5)
        w = tfp.distributions.InverseGaussian(a / distance, tf.square(a)).sample(seed=seed)
        return w, y * (a + w)
