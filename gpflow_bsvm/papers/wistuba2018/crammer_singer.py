"""The objective of Wistuba & Rawat (2018) as printed, and the bound that it approximates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from ... import likelihoods
from ...likelihoods.base import differentiate
from ...likelihoods.crammer_singer import of_label
from ...likelihoods.hooks import Moments, Sites
from ...likelihoods.maximum import distribution, grid

PUBLISHED = "wistuba2018"


class Held(NamedTuple):
    """Local variables of rows at some q(f) (Wistuba & Rawat 2018, Algorithm 1, line 4)."""

    alpha: tf.Tensor  #: [..., 1]
    rival: tf.Tensor  #: [..., C], one-hot: t, the class of largest mean besides the label


class CrammerSinger(likelihoods.CrammerSinger):
    """
    `gpflow_bsvm.likelihoods.CrammerSinger` with local variables and two more objectives. With
    R = max_{t != y} f_t, a = penalty / 2,

        bound="augmented":    E log L >= -a m - a sqrt(m^2 + v),  m = 1 + E R - Fmu_y,
            v = Var R + Fvar_y: the binary papers' bound with the moments of the rival. Looser than
            "exact", and not always concave: a precision that comes out negative is set to 0.
        bound="wistuba2018":  that with R replaced by f_t, t the rival of largest mean. This is what
            the paper maximizes, and it is *not* a lower bound, as max f_t >= f_t; nor does its
            coordinate ascent always ascend, because a step can make another class the rival. Of
            equal means, as at the prior, the first counts: a fit depends on the classes' order.
    """

    bounds = ("exact", "augmented", PUBLISHED)

    @property
    def sites_are_slopes(self) -> bool:  # type: ignore[override]
        """:return: False where a precision may have been set to 0."""
        return self.bound != "augmented"

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        if self.bound == "exact":
            return super()._variational_expectations(X, Fmu, Fvar, Y)
        return self.log_kappa() - self.penalty * self._loss(*self._row(Fmu, Fvar, Y))

    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """
        :return: the Gaussian sites: with bound="wistuba2018" `held_sites` at the local variables of
            `hold`, with "augmented" by automatic differentiation.
        """
        if self.bound == "exact":
            return super().sites(X, Fmu, Fvar, Y)
        if self.bound == PUBLISHED:
            return self._held_sites(self.hold(Fmu, Fvar, Y), Fmu, Y)
        hot, Fmu, Fvar = self._row(Fmu, Fvar, Y)
        return differentiate(lambda mu, v: -self.penalty * self._loss(hot, mu, v), Fmu, Fvar)

    def moments(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Moments:
        """:return: the moments of b = 1 + R - f_y, both [..., 1]."""
        return Moments(*self._moments(*self._row(Fmu, Fvar, Y)), self.penalty)

    def hold(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Held:
        """
        :return: alpha = m^2 + v, and t, the rival of largest mean (Algorithm 1, line 4).
        :raise ValueError: unless bound="wistuba2018".
        """
        if self.bound != PUBLISHED:
            raise ValueError(f'only bound="wistuba2018" chooses a rival, not {self.bound!r}')
        hot, mean, variance = self._row(Fmu, Fvar, Y)
        return Held(self._moments(hot, mean, variance)[1], _largest_rival(hot, mean))

    @property
    def held_sites(self) -> Callable[..., Sites] | None:
        """
        :return: a function of `hold(Fmu, Fvar, Y)`, Fmu and Y, with bound="wistuba2018", whose
            sites alone are Gaussian at given local variables: with w = a / sqrt(alpha), of the
            label w and a + w (1 + mu_t), of its rival w and -(a + w (1 - mu_y)), of all others 0
            (eqs. 45 and 46, for a batch, signs mended). Else None.
        """
        return self._held_sites if self.bound == PUBLISHED else None

    def _held_sites(self, held: Held, Fmu: TensorType, Y: TensorType) -> Sites:
        y, Fmu, _ = self._row(Fmu, tf.zeros_like(Fmu), Y)
        t, a = held.rival, self.penalty / 2
        w = a / tf.sqrt(held.alpha)
        of_label, of_rival = (tf.reduce_sum(one * Fmu, -1, keepdims=True) for one in (y, t))
        return Sites(w * (y + t), y * (a + w * (1 + of_rival)) - t * (a + w * (1 - of_label)))

    def _loss(self, hot: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """:return: (m + sqrt(m^2 + v)) / 2, [...]."""
        mean, square = self._moments(hot, Fmu, Fvar)
        return (mean + tf.sqrt(square))[..., 0] / 2

    def _moments(self, hot: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tuple[tf.Tensor, Any]:
        """:return: m and m^2 + v, both [..., 1]."""
        rival, variance = (moment[..., None] for moment in self._rival(hot, Fmu, Fvar))
        m = 1 + rival - of_label(hot, Fmu)
        return m, tf.square(m) + variance + of_label(hot, Fvar)

    def _rival(
        self, hot: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and variance of the maximum over rivals, or of f_t instead, [...]."""
        if self.bound == PUBLISHED:
            chosen = _largest_rival(hot, Fmu)
            return tf.reduce_sum(chosen * Fmu, axis=-1), tf.reduce_sum(chosen * Fvar, axis=-1)
        # The label is excluded by a mean below the reach of all others.
        low = tf.reduce_min(Fmu - 20 * tf.sqrt(Fvar), axis=-1, keepdims=True)
        smallest = tf.reduce_min(Fvar, axis=-1, keepdims=True)
        apart = tf.where(hot > 0, low - 20 * tf.sqrt(smallest), Fmu)
        return moments_of_maximum(apart, tf.where(hot > 0, smallest, Fvar))


def moments_of_maximum(mean: tf.Tensor, variance: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param mean: [..., C], and variance: [..., C], positive.
    :return: mean and variance of max_j f_j, both [...].
    """
    scale = tf.sqrt(variance)
    nodes = grid(mean, scale)
    F, _, total = distribution(nodes, mean, scale)
    density = F * total
    first = tf.reduce_sum(density * nodes.above, axis=-1, keepdims=True)
    second = tf.reduce_sum(density * tf.square(nodes.above - first), axis=-1)
    return nodes.low + first[..., 0], second


def _largest_rival(hot: tf.Tensor, Fmu: tf.Tensor) -> tf.Tensor:
    """:return: one-hot, the class of largest mean besides the label."""
    rival = tf.argmax(tf.where(hot > 0, -np.inf * tf.ones_like(Fmu), Fmu), axis=-1)
    return tf.one_hot(rival, hot.shape[-1], dtype=Fmu.dtype)
