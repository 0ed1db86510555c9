"""The squared hinge loss as a pseudo-likelihood."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from .base import VARIANCE_FLOOR, Sites
from .binary import (
    BinaryLikelihood,
    check_site_shapes,
    expected_ramp,
    normal_cdf,
    signs,
)
from .penalty import Penalized

#: Places in [0, 1] where the normaliser is looked for: wrong by less than 1e-6 of it.
_PLACES = 1001


class SquaredHinge(Penalized, BinaryLikelihood):
    r"""
    The pseudo-likelihood of the support vector machine with quadratic slack (Gold & Sollich 2003,
    p = 2), whose mode is scikit-learn's `LinearSVC(loss="squared_hinge")`:

        L(y | f) = exp(-penalty max(0, 1 - y f)^2).

    With m = 1 - y Fmu, v = Fvar and z = m / sqrt(v), training maximises the expectation itself,

        E log L = -penalty ((m^2 + v) Phi(z) + m sqrt(v) phi(z)).

    Unlike the hinge it has a slope that grows with the error, so that a few rows with wrong labels
    weigh more, and a curvature on all of the wrong side: no point is a kink.

    See `BinaryLikelihood` for labels, link and what is normalised, `Penalized` for `penalty` and
    `normalizer`.
    """

    def __init__(
        self,
        penalty: float = 1.0,
        *,
        link: str = "probit",
        normalizer: bool = False,
        **kwargs: Any,
    ) -> None:
        """
        :param penalty: factor of the loss, positive.
        :param link: "probit" or "published", see `BinaryLikelihood`.
        :param normalizer: whether training counts kappa, see `Penalized`.
        :raise ValueError: for another link, or a penalty that is not positive and finite.
        """
        super().__init__(link=link, **kwargs)
        self._set_penalty(penalty, normalizer, 2)

    def log_kappa(self) -> tf.Tensor:
        """As in `Penalized`; L(+1 | f) + L(-1 | f) is largest somewhere in |f| <= 1."""
        penalty = tf.convert_to_tensor(self.penalty)
        if not self.normalizer:
            return tf.zeros_like(penalty)
        f = tf.linspace(tf.zeros_like(penalty), tf.ones_like(penalty), _PLACES)
        losses = tf.stack([tf.square(1 - f), tf.square(1 + f)])
        return -tf.reduce_max(tf.reduce_logsumexp(-penalty * losses, axis=0))

    @inherit_check_shapes
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return self.log_kappa() - self.penalty * tf.square(tf.nn.relu(1 - signs(Y) * F))

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        m, s = self._margin(Fmu, Fvar, Y)
        loss = tf.square(s) * normal_cdf(m / s) + m * expected_ramp(m, s)
        return tf.reduce_sum(self.log_kappa() - self.penalty * loss, axis=-1)

    @check_site_shapes
    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """
        The Gaussian sites (`gpflow_bsvm.likelihoods.sites`) in closed form:

            w = 2 penalty Phi(z),    r = 2 y penalty (m Phi(z) + sqrt(v) phi(z)) + w Fmu.
        """
        m, s = self._margin(Fmu, Fvar, Y)
        w = 2 * self.penalty * normal_cdf(m / s)
        return w, 2 * self.penalty * signs(Y) * expected_ramp(m, s) + w * Fmu

    def _margin(
        self, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return 1 - signs(Y) * Fmu, tf.sqrt(tf.maximum(Fvar, VARIANCE_FLOOR))
