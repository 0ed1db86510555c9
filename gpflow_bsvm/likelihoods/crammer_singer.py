"""The multi-class Bayesian SVM: the hinge loss of Crammer and Singer as a pseudo-likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType

from .base import VARIANCE_FLOOR, Sites, sites_by_autodiff
from .categorical import CategoricalLikelihood
from .maximum import maximum, moments_of_maximum
from .penalty import Penalized

BOUNDS = ("exact", "augmented", "published")


class CrammerSinger(Penalized, CategoricalLikelihood):
    r"""
    One latent function per class, and the loss of the largest rival (Wistuba & Rawat 2018, eq. 4):

        L(y | f) = exp(-penalty max(0, 1 + max_{t != y} f_t - f_y)).

    With f_1..f_C independent under q and R = max_{t != y} f_t, a = penalty / 2, training maximises

        bound="exact":      E log L = -penalty (E max_j (f_j - [j = y]) - Fmu_y + 1),
            one-dimensional quadrature: a true ELBO. (max(0, 1 + R - f_y) is the maximum over all
            classes of f_j, the label's lowered by 1, less that of the label.)
        bound="augmented":  E log L >= -a m - a sqrt(m^2 + v),  m = 1 + E R - Fmu_y,
            v = Var R + Fvar_y: the binary papers' bound with the moments of the rival. Looser, and
            not always concave: a precision that comes out negative is set to 0.
        bound="published":  the same with R replaced by f_t, t the rival of largest mean. This is
            what the paper maximises, and it is *not* a lower bound, as max f_t >= f_t; nor does
            its coordinate ascent always ascend, because a step can make another class the rival.
            Here for comparison with the paper only.

    Prediction is P(y = c) = P(argmax_j f_j + e_j = c) with e_j ~ N(0, 1/2), which for two classes
    is the probit link of the binary models. See `CategoricalLikelihood` for labels and what is
    normalised, `Penalized` for `penalty` and `normalizer`.
    """

    shift_invariant = True

    def __init__(
        self,
        num_classes: int,
        penalty: float = 2.0,
        bound: str = "exact",
        *,
        normalizer: bool = False,
        **kwargs: Any,
    ) -> None:
        """
        :param num_classes: C, at least 2.
        :param penalty: slope of the loss, positive.
        :param bound: "exact", "augmented" or "published".
        :param normalizer: whether training counts kappa, see `Penalized`.
        :raise ValueError: for other values.
        """
        super().__init__(num_classes, **kwargs)
        if bound not in BOUNDS:
            raise ValueError(f"bound must be one of {BOUNDS}, got {bound!r}")
        self.bound = bound
        self._set_penalty(penalty, normalizer, num_classes)

    @inherit_check_shapes
    def _log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        F = self.latents(F)
        hot = self.one_hot(Y, F)
        gain = tf.reduce_sum(hot * F, -1) - 1 - tf.reduce_max(F - hot, -1)
        return self.log_kappa() + self.penalty * gain

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        Fmu, Fvar = self.latents(Fmu), tf.maximum(Fvar, VARIANCE_FLOOR)
        hot = self.one_hot(Y, Fmu)
        label = tf.reduce_sum(hot * Fmu, axis=-1)
        if self.bound == "exact":
            gain = label - 1 - maximum(Fmu - hot, Fvar).mean
            return self.log_kappa() + self.penalty * gain
        rival, variance = self._rival(Fmu, Fvar, hot)
        m = 1 + rival - label
        v = variance + tf.reduce_sum(hot * Fvar, axis=-1)
        return self.log_kappa() - self.penalty / 2 * (m + tf.sqrt(tf.square(m) + v))

    def _rival(
        self, Fmu: tf.Tensor, Fvar: tf.Tensor, hot: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and variance of what the bound takes for max_{t != y} f_t, both [...]."""
        if self.bound == "augmented":
            # The label takes no part where its mean is below the reach of all others.
            low = tf.reduce_min(Fmu - 20 * tf.sqrt(Fvar), axis=-1, keepdims=True)
            smallest = tf.reduce_min(Fvar, axis=-1, keepdims=True)
            apart = tf.where(hot > 0, low - 20 * tf.sqrt(smallest), Fmu)
            return moments_of_maximum(apart, tf.where(hot > 0, smallest, Fvar))
        rival = tf.argmax(tf.where(hot > 0, -np.inf * tf.ones_like(Fmu), Fmu), axis=-1)
        chosen = tf.one_hot(rival, self.num_classes, dtype=Fmu.dtype)
        return tf.reduce_sum(chosen * Fmu, axis=-1), tf.reduce_sum(chosen * Fvar, axis=-1)

    @check_shapes(
        "Fmu: [batch..., C]",
        "Fvar: [batch..., C]",
        "return[0]: [batch..., C]",
        "return[1]: [batch..., C]",
    )
    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """
        The Gaussian sites (`gpflow_bsvm.likelihoods.sites`) of all classes. For the exact bound,
        with h_j = f_j - [j = y],

            w_c = penalty d^2 E max_j h_j / d mu_c^2,
            r_c = penalty ([c = y] - P(argmax_j h_j = c)) + w_c Fmu_c,

        for the others by automatic differentiation of the bound.
        """
        if self.bound != "exact":
            return sites_by_autodiff(self, X, Fmu, Fvar, Y)
        Fmu = self.latents(Fmu)
        hot = self.one_hot(Y, Fmu)
        largest = maximum(Fmu - hot, tf.maximum(Fvar, VARIANCE_FLOOR))
        w = self.penalty * largest.curvature
        return w, self.penalty * (hot - largest.probability) + w * Fmu

    def class_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """
        :param Fmu: [..., C], and Fvar: [..., C], not negative.
        :return: P(argmax_j f_j + e_j = c), e_j ~ N(0, 1/2), [..., C].
        """
        return maximum(Fmu, Fvar + 0.5).probability
