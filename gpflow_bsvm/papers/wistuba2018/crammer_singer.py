"""The objective of Wistuba & Rawat (2018) as printed, which is no bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from ... import likelihoods
from ...likelihoods import Sites

PUBLISHED = "wistuba2018"


class Held(NamedTuple):
    """Local variables of rows at some q(f) (Wistuba & Rawat 2018, Algorithm 1, line 4)."""

    alpha: tf.Tensor  #: [..., 1]
    rival: tf.Tensor  #: [..., C], one-hot: t, the class of largest mean beside the label


class CrammerSinger(likelihoods.CrammerSinger):
    """
    `gpflow_bsvm.likelihoods.CrammerSinger` with one more objective:

        bound="wistuba2018":  that of bound="augmented" with R replaced by f_t, t the rival of
            largest mean. This is what the paper maximises, and it is *not* a lower bound, as
            max f_t >= f_t; nor does its coordinate ascent always ascend, because a step can make
            another class the rival.
    """

    bounds = (*likelihoods.CrammerSinger.bounds, PUBLISHED)

    @property
    def sites_are_slopes(self) -> bool:  # type: ignore[override]
        """:return: False where a precision may have been set to 0."""
        return self.bound != "augmented"

    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """:return: with bound="wistuba2018" `held_sites` at the local variables of `hold`."""
        if self.bound != PUBLISHED:
            return super().sites(X, Fmu, Fvar, Y)
        return self._held_sites(self.hold(Fmu, Fvar, Y), Fmu, Y)

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
        :return: with bound="wistuba2018", of which alone sites at given local variables are
            Gaussian, a function of `hold(Fmu, Fvar, Y)`, Fmu and Y: with w = a / sqrt(alpha), of
            the label w and a + w (1 + mu_t), of its rival w and -(a + w (1 - mu_y)), of all others
            0 (eqs. 45 and 46, for a batch, signs mended). Else None.
        """
        return self._held_sites if self.bound == PUBLISHED else None

    def _held_sites(self, held: Held, Fmu: TensorType, Y: TensorType) -> Sites:
        y, Fmu, _ = self._row(Fmu, tf.zeros_like(Fmu), Y)
        t, a = held.rival, self.penalty / 2
        w = a / tf.sqrt(held.alpha)
        of_label, of_rival = (tf.reduce_sum(one * Fmu, -1, keepdims=True) for one in (y, t))
        return Sites(w * (y + t), y * (a + w * (1 + of_rival)) - t * (a + w * (1 - of_label)))

    def _rival(
        self, hot: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        if self.bound != PUBLISHED:
            return super()._rival(hot, Fmu, Fvar)
        chosen = _largest_rival(hot, Fmu)
        return tf.reduce_sum(chosen * Fmu, axis=-1), tf.reduce_sum(chosen * Fvar, axis=-1)


def _largest_rival(hot: tf.Tensor, Fmu: tf.Tensor) -> tf.Tensor:
    """:return: one-hot, the class of largest mean beside the label."""
    rival = tf.argmax(tf.where(hot > 0, -np.inf * tf.ones_like(Fmu), Fmu), axis=-1)
    return tf.one_hot(rival, hot.shape[-1], dtype=Fmu.dtype)
