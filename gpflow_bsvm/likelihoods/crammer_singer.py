"""The multi-class Bayesian SVM: the hinge loss of Crammer and Singer as a pseudo-likelihood."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from .base import VARIANCE_FLOOR, Sites, differentiate
from .categorical import CategoricalLikelihood
from .maximum import maximum, moments_of_maximum
from .penalized import Moments


class CrammerSinger(CategoricalLikelihood):
    r"""
    One latent function per class, and the loss of the largest rival (Wistuba & Rawat 2018, eq. 4):

        L(y | f) = exp(-penalty max(0, 1 + max_{t != y} f_t - f_y)).

    With f_1..f_C independent under q and R = max_{t != y} f_t, a = penalty / 2, training maximises

        bound="exact":        E log L = -penalty (E max_j (f_j - [j = y]) - Fmu_y + 1),
            one-dimensional quadrature: a true ELBO. (max(0, 1 + R - f_y) is the maximum over all
            classes of f_j, the label's lowered by 1, less that of the label.)
        bound="augmented":    E log L >= -a m - a sqrt(m^2 + v),  m = 1 + E R - Fmu_y,
            v = Var R + Fvar_y: the binary papers' bound with the moments of the rival. Looser, and
            not always concave: a precision that comes out negative is set to 0.

    The paper's own objective, which is no bound, is in `gpflow_bsvm.papers.wistuba2018`.

    Prediction is P(y = c) = P(argmax_j f_j + e_j = c) with e_j ~ N(0, 1/2), which for two classes
    is the probit link of the binary models. The class of largest probability is not always that of
    the largest mean, which is the paper's decision rule: a mean that is not well known counts
    less. See `CategoricalLikelihood` for labels and what is
    normalised, `Penalized` for `penalty` and `normalizer`.
    """

    shift_invariant = True

    @property
    def sites_are_slopes(self) -> bool:  # type: ignore[override]
        """:return: False where a precision may have been set to 0."""
        return self.bound == "exact"

    @property
    def has_point_sites(self) -> bool:
        """:return: False: the moments of a maximum are no lower bound at a point."""
        return False

    @property
    def num_labels(self) -> int:
        """:return: C."""
        return self.num_classes

    def losses(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: max(0, 1 + max_{t != y} f_t - f_y) = max_j (f_j - [j = y]) - f_y + 1."""
        hot = self.one_hot(Y, F)
        return tf.reduce_max(F - hot, axis=-1, keepdims=True) - _of_label(hot, F) + 1

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        loss = self._exact_loss if self.bound == "exact" else self._augmented_loss
        return self.log_kappa() - self.penalty * loss(*self._row(Fmu, Fvar, Y))

    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """
        :return: the Gaussian sites: with bound="exact" and h_j = f_j - [j = y], w_c = penalty
            d^2 E max_j h_j / d mu_c^2, r_c = penalty ([c = y] - P(argmax_j h_j = c)) + w_c Fmu_c;
            else by automatic differentiation.
        """
        hot, Fmu, Fvar = self._row(Fmu, Fvar, Y)
        if self.bound != "exact":
            return differentiate(
                lambda mu, v: -self.penalty * self._augmented_loss(hot, mu, v), Fmu, Fvar
            )
        largest = maximum(Fmu - hot, Fvar)
        w = self.penalty * largest.curvature
        return Sites(w, self.penalty * (hot - largest.probability) + w * Fmu)

    def moments(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Moments:
        """:return: the moments of b = 1 + R - f_y, both [..., 1]."""
        m, square = self._moments(*self._row(Fmu, Fvar, Y))
        return Moments(m, square, self.penalty)

    def _row(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> tuple[tf.Tensor, ...]:
        """:return: [j = y], Fmu and a positive Fvar, [..., C]."""
        hot = self.one_hot(Y, Fmu)
        Fmu, Fvar = (tf.convert_to_tensor(part, hot.dtype) for part in (Fmu, Fvar))
        return hot, Fmu, tf.maximum(Fvar, VARIANCE_FLOOR)

    def _exact_loss(self, hot: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """:return: E max_j h_j - Fmu_y + 1, [...]."""
        return maximum(Fmu - hot, Fvar).mean - _of_label(hot, Fmu)[..., 0] + 1

    def _augmented_loss(self, hot: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """:return: (m + sqrt(m^2 + v)) / 2, [...]."""
        mean, square = self._moments(hot, Fmu, Fvar)
        return (mean + tf.sqrt(square))[..., 0] / 2

    def _moments(self, hot: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tuple[tf.Tensor, Any]:
        """:return: m and m^2 + v, both [..., 1]."""
        rival, variance = (moment[..., None] for moment in self._rival(hot, Fmu, Fvar))
        m = 1 + rival - _of_label(hot, Fmu)
        return m, tf.square(m) + variance + _of_label(hot, Fvar)

    def _rival(
        self, hot: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and variance of what counts for max_{t != y} f_t, both [...]."""
        # The label takes no part where its mean is below the reach of all others.
        low = tf.reduce_min(Fmu - 20 * tf.sqrt(Fvar), axis=-1, keepdims=True)
        smallest = tf.reduce_min(Fvar, axis=-1, keepdims=True)
        apart = tf.where(hot > 0, low - 20 * tf.sqrt(smallest), Fmu)
        return moments_of_maximum(apart, tf.where(hot > 0, smallest, Fvar))

    def class_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """
        :param Fmu: [..., C], and Fvar: [..., C], not negative.
        :return: P(argmax_j f_j + e_j = c), e_j ~ N(0, 1/2), [..., C].
        """
        return maximum(Fmu, Fvar + 0.5).probability


def _of_label(hot: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """:return: the value of the label, [..., 1]."""
    return tf.reduce_sum(hot * values, axis=-1, keepdims=True)
