"""The multi-class Bayesian SVM: the hinge loss of Crammer and Singer as a pseudo-likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from .augmentation import Augmented, Moments
from .base import Sites
from .categorical import CategoricalHinge
from .maximum import maximum, moments_of_maximum
from .penalty import Bound, Seen


@dataclass(frozen=True)
class ExactMaximum(Bound):
    """E log L itself, see `CrammerSinger`; here h_j = f_j - [j = y]."""

    name = "exact"

    def expectation(self, seen: Seen) -> tf.Tensor:
        """:return: -penalty (E max_j h_j - Fmu_y + 1)."""
        largest = maximum(seen.Fmu - seen.y, seen.Fvar).mean[..., None]
        return seen.penalty * (_of_label(seen, seen.Fmu) - 1 - largest)

    def sites(self, seen: Seen) -> Sites:
        """
        :return: w_c = penalty d^2 E max_j h_j / d mu_c^2,
            r_c = penalty ([c = y] - P(argmax_j h_j = c)) + w_c Fmu_c.
        """
        largest = maximum(seen.Fmu - seen.y, seen.Fvar)
        w = seen.penalty * largest.curvature
        return Sites(w, seen.penalty * (seen.y - largest.probability) + w * seen.Fmu)


@dataclass(frozen=True)
class AugmentedMaximum(Bound):
    """The binary papers' bound with the moments of the rival, see `CrammerSinger`."""

    name = "augmented"

    def expectation(self, seen: Seen) -> tf.Tensor:
        """:return: -a m - a sqrt(m^2 + v)."""
        mean, second = self.moments(seen)
        return -seen.penalty / 2 * (mean + tf.sqrt(second))

    def moments(self, seen: Seen) -> Moments:
        """:return: m and m^2 + v, both [..., 1]."""
        rival, variance = (moment[..., None] for moment in self.rival(*seen[:3]))
        m = 1 + rival - _of_label(seen, seen.Fmu)
        v = variance + _of_label(seen, seen.Fvar)
        return Moments(m, tf.square(m) + v)

    def rival(self, hot: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and variance of what counts for max_{t != y} f_t, both [...]."""
        # The label takes no part where its mean is below the reach of all others.
        low = tf.reduce_min(Fmu - 20 * tf.sqrt(Fvar), axis=-1, keepdims=True)
        smallest = tf.reduce_min(Fvar, axis=-1, keepdims=True)
        apart = tf.where(hot > 0, low - 20 * tf.sqrt(smallest), Fmu)
        return moments_of_maximum(apart, tf.where(hot > 0, smallest, Fvar))


class Held(NamedTuple):
    """Local variables of rows at some q(f) (Wistuba & Rawat 2018, Algorithm 1, line 4)."""

    alpha: tf.Tensor  #: [..., 1]
    rival: tf.Tensor  #: [..., C], one-hot: t, the class of largest mean beside the label


@dataclass(frozen=True)
class Wistuba2018(AugmentedMaximum):
    """The same of the rival of largest mean: the paper's, and no bound, see `CrammerSinger`."""

    name = "wistuba2018"

    def sites(self, seen: Seen) -> Sites:
        """:return: `held_sites` at the local variables of `seen`."""
        return self.held_sites(self.hold(seen), seen)

    def hold(self, seen: Seen) -> Held:
        """:return: alpha = m^2 + v and t (Algorithm 1, line 4)."""
        return Held(self.moments(seen).square, self._rival(seen.y, seen.Fmu))

    def held_sites(self, held: Held, seen: Seen) -> Sites:
        """
        :param seen: of which the means count, and the variances do not.
        :return: with w = a / sqrt(alpha), of the label w and a + w (1 + mu_t), of its rival w and
            -(a + w (1 - mu_y)), of all others 0 (eqs. 45 and 46, for a batch, signs mended).
        """
        y, t, a = seen.y, held.rival, seen.penalty / 2
        w = a / tf.sqrt(held.alpha)
        of_label, of_rival = (tf.reduce_sum(one * seen.Fmu, -1, keepdims=True) for one in (y, t))
        return Sites(w * (y + t), y * (a + w * (1 + of_rival)) - t * (a + w * (1 - of_label)))

    def rival(self, hot: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and variance of f_t, t != y of largest mean, both [...]."""
        chosen = self._rival(hot, Fmu)
        return tf.reduce_sum(chosen * Fmu, axis=-1), tf.reduce_sum(chosen * Fvar, axis=-1)

    def _rival(self, hot: tf.Tensor, Fmu: tf.Tensor) -> tf.Tensor:
        rival = tf.argmax(tf.where(hot > 0, -np.inf * tf.ones_like(Fmu), Fmu), axis=-1)
        return tf.one_hot(rival, hot.shape[-1], dtype=Fmu.dtype)


def _of_label(seen: Seen, values: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(seen.y * values, axis=-1, keepdims=True)


class CrammerSinger(Augmented, CategoricalHinge):
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
        bound="wistuba2018":  the same with R replaced by f_t, t the rival of largest mean. This is
            what the paper maximises, and it is *not* a lower bound, as max f_t >= f_t; nor does
            its coordinate ascent always ascend, because a step can make another class the rival.
            Here for comparison with the paper only.

    Prediction is P(y = c) = P(argmax_j f_j + e_j = c) with e_j ~ N(0, 1/2), which for two classes
    is the probit link of the binary models. The class of largest probability is not always that of
    the largest mean, which is the paper's decision rule: a mean that is not well known counts
    less. See `CategoricalLikelihood` for labels and what is
    normalised, `Penalized` for `penalty` and `normalizer`.
    """

    shift_invariant = True
    bounds = (ExactMaximum(), AugmentedMaximum(), Wistuba2018())

    @property
    def num_labels(self) -> int:
        """:return: C."""
        return self.num_classes

    def losses(self, y: tf.Tensor, F: TensorType) -> tf.Tensor:
        """:return: max(0, 1 + max_{t != y} f_t - f_y) = max_j (f_j - [j = y]) - f_y + 1."""
        label = tf.reduce_sum(y * F, axis=-1, keepdims=True)
        return tf.reduce_max(F - y, axis=-1, keepdims=True) - label + 1

    def moments(self, seen: Seen) -> Moments:
        """
        :return: of b = 1 + R - f_y; with bound="wistuba2018" of b = 1 + f_t - f_y, t the rival of
            largest mean (Wistuba & Rawat 2018, Algorithm 1, line 4); both [..., 1].
        """
        bound = self.bound if isinstance(self.bound, AugmentedMaximum) else AugmentedMaximum()
        return bound.moments(seen)

    @property
    def held_sites(self) -> Callable[..., Sites] | None:
        """
        :return: with bound="wistuba2018", of which alone sites at given local variables are
            Gaussian, a function of `hold(Fmu, Fvar, Y)`, Fmu and Y: `Wistuba2018.held_sites`.
        """
        bound = self.bound
        if not isinstance(bound, Wistuba2018):
            return None
        return lambda held, Fmu, Y: bound.held_sites(held, self._seen(Fmu, tf.zeros_like(Fmu), Y))

    def hold(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Held:
        """
        :return: alpha, and the rival of largest mean.
        :raise ValueError: unless bound="wistuba2018".
        """
        if not isinstance(self.bound, Wistuba2018):
            raise ValueError(f'only bound="wistuba2018" chooses a rival, not {self.bound.name!r}')
        return self.bound.hold(self._seen(Fmu, Fvar, Y))

    def class_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """
        :param Fmu: [..., C], and Fvar: [..., C], not negative.
        :return: P(argmax_j f_j + e_j = c), e_j ~ N(0, 1/2), [..., C].
        """
        return maximum(Fmu, Fvar + 0.5).probability
