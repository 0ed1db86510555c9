"""The multi-class Bayesian SVM: the hinge loss of Crammer and Singer as a pseudo-likelihood."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType

from .base import VARIANCE_FLOOR, Moments, Penalized, Sites, sites_by_autodiff
from .classes import CategoricalLikelihood
from .maximum import maximum, moments_of_maximum


class Held(NamedTuple):
    """Local variables of rows for a given q(f) (Wistuba & Rawat 2018, Algorithm 1, line 4)."""

    alpha: tf.Tensor  #: [..., 1]
    rival: tf.Tensor  #: [..., C], one-hot t, the class of largest mean other than the label


class CrammerSinger(CategoricalLikelihood, Penalized):
    r"""
    One latent function per class, and a loss that compares f_y with its largest rival R (Wistuba &
    Rawat 2018, eq. 4):

        L(y | f) = exp(-penalty max(0, 1 + R - f_y)),    R = max_{t != y} f_t.

    f_1..f_C are independent under q. `bound` names the objective; a is penalty / 2:

    - "exact", the default: E log L = -penalty (E max_j (f_j - [j = y]) - Fmu_y + 1), by
      one-dimensional quadrature. It is the tightest bound.
    - "augmented": E log L >= -a m - a sqrt(m^2 + v), m = 1 + E R - Fmu_y, v = Var R + Fvar_y. This
      is the bound of the binary papers, with GIG local variables and the moments of the largest
      rival. It is looser, and not always concave: negative precisions of sites are set to 0.
    - "wistuba2018", the paper's objective: as "augmented", with R replaced by f_t, where t is the
      rival of largest mean. It is *not* a lower bound, because R >= f_t; a full step can lower it
      by changing the rival. If means are equal, as in the prior, the first class is the rival, and
      a fit therefore depends on the order of the classes. The paper's Algorithm 1 is
      `gpflow_bsvm.papers.wistuba2018.ClassByClass`.

    Prediction is P(y = c) = P(argmax_j f_j + e_j = c) with e_j ~ N(0, 1/2); for two classes, this
    is the probit link of the binary models. A mean counts less if its f is uncertain, so the most
    probable class can differ from the paper's prediction, the class of largest mean. See
    `CategoricalLikelihood` for labels and normalization, and `Penalized` for `penalty` and
    `normalizer`.
    """

    bounds: ClassVar[tuple[str, ...]] = ("exact", "augmented", "wistuba2018")
    shift_invariant = True

    @property
    def num_labels(self) -> int:
        """:return: C."""
        return self.num_classes

    @property
    def sites_are_slopes(self) -> bool:
        """:return: False if precisions may be set to 0."""
        return self.bound != "augmented"

    @inherit_check_shapes
    def losses(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: max(0, 1 + max_{t != y} f_t - f_y) = max_j (f_j - [j = y]) - f_y + 1."""
        hot = self.one_hot(Y, F)
        return tf.reduce_max(F - hot, axis=-1, keepdims=True) - of_label(hot, F) + 1

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        hot, mean, variance = self._row(Fmu, Fvar, Y)
        if self.bound == "exact":
            loss = maximum(mean - hot, variance).mean - of_label(hot, mean)[..., 0] + 1
        else:
            m, square = self._moments(hot, mean, variance)
            loss = (m + tf.sqrt(square))[..., 0] / 2
        return self.log_kappa() - self.penalty * loss

    @inherit_check_shapes
    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """
        :return: the Gaussian sites. For "exact", with h_j = f_j - [j = y], w_c = penalty d^2 E
            max_j h_j / d mu_c^2 and r_c = penalty ([c = y] - P(argmax_j h_j = c)) + w_c Fmu_c; for
            "wistuba2018", `held_sites` at the result of `hold`; "augmented" uses automatic
            differentiation.
        """
        if self.bound == "wistuba2018":
            return self.held_sites(self.hold(Fmu, Fvar, Y), Fmu, Y)
        if self.bound == "augmented":
            return sites_by_autodiff(self, X, Fmu, Fvar, Y)
        hot, Fmu, Fvar = self._row(Fmu, Fvar, Y)
        largest = maximum(Fmu - hot, Fvar)
        w = self.penalty * largest.curvature
        return Sites(w, self.penalty * (hot - largest.probability) + w * Fmu)

    @inherit_check_shapes
    def moments(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Moments:
        """:return: the moments of b = 1 + R - f_y; with "wistuba2018", f_t replaces R."""
        hot, mean, variance = self._row(Fmu, Fvar, Y)
        mean, square = self._moments(hot, mean, variance)
        return Moments(mean, square, self.penalty + tf.zeros_like(mean))

    def hold(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Held:
        """
        :return: alpha = m^2 + v, and t, the rival of largest mean (Algorithm 1, line 4).
        :raise ValueError: unless bound="wistuba2018".
        """
        if self.bound != "wistuba2018":
            raise ValueError(f'hold needs bound="wistuba2018", got bound={self.bound!r}')
        hot, mean, variance = self._row(Fmu, Fvar, Y)
        return Held(self._moments(hot, mean, variance)[1], _largest_rival(hot, mean))

    def held_sites(self, held: Held, Fmu: TensorType, Y: TensorType) -> Sites:
        """
        :param held: the result of `hold`.
        :return: sites for bound="wistuba2018", the only objective that is Gaussian given local
            variables. With w = a / sqrt(alpha), the sites (w, r) are (w, a + w (1 + mu_t)) for the
            label, (w, -a - w (1 - mu_y)) for its rival, and (0, 0) for all others (eqs. 45-46 for a
            batch, with corrected signs).
        """
        y, Fmu, _ = self._row(Fmu, tf.zeros_like(Fmu), Y)
        t = held.rival
        a = self.penalty / 2
        w = a / tf.sqrt(held.alpha)
        label = of_label(y, Fmu)
        rival = of_label(t, Fmu)
        return Sites(w * (y + t), y * (a + w * (1 + rival)) - t * (a + w * (1 - label)))

    @inherit_check_shapes
    def class_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """:return: P(argmax_j f_j + e_j = c), e_j ~ N(0, 1/2), for Fvar >= 0."""
        return maximum(Fmu, Fvar + 0.5).probability

    def _row(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> tuple[tf.Tensor, ...]:
        """:return: [j = y], Fmu and a positive Fvar, [..., C]."""
        hot = self.one_hot(Y, Fmu)
        Fmu, Fvar = (tf.convert_to_tensor(part, hot.dtype) for part in (Fmu, Fvar))
        return hot, Fmu, tf.maximum(Fvar, VARIANCE_FLOOR)

    def _moments(self, hot: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tuple[tf.Tensor, Any]:
        """:return: m and m^2 + v, both [..., 1]."""
        rival, variance = (moment[..., None] for moment in self._rival(hot, Fmu, Fvar))
        m = 1 + rival - of_label(hot, Fmu)
        return m, tf.square(m) + variance + of_label(hot, Fvar)

    def _rival(
        self, hot: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and variance of R, or with "wistuba2018" of f_t, [...]."""
        if self.bound == "wistuba2018":
            chosen = _largest_rival(hot, Fmu)
            return tf.reduce_sum(chosen * Fmu, axis=-1), tf.reduce_sum(chosen * Fvar, axis=-1)
        # Give the label a mean far below all others, to exclude it from the maximum.
        low = tf.reduce_min(Fmu - 20 * tf.sqrt(Fvar), axis=-1, keepdims=True)
        smallest = tf.reduce_min(Fvar, axis=-1, keepdims=True)
        apart = tf.where(hot > 0, low - 20 * tf.sqrt(smallest), Fmu)
        return moments_of_maximum(apart, tf.where(hot > 0, smallest, Fvar))


@check_shapes("hot: [broadcast batch..., C]", "values: [batch..., C]", "return: [batch..., 1]")
def of_label(hot: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """:return: the entry of the label, [..., 1]."""
    return tf.reduce_sum(hot * values, axis=-1, keepdims=True)


def _largest_rival(hot: tf.Tensor, Fmu: tf.Tensor) -> tf.Tensor:
    """:return: the class of largest mean other than the label, one-hot."""
    rival = tf.argmax(tf.where(hot > 0, -np.inf * tf.ones_like(Fmu), Fmu), axis=-1)
    return tf.one_hot(rival, hot.shape[-1], dtype=Fmu.dtype)
