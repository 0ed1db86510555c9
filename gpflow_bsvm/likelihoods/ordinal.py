"""Ordered classes: a level hinge for each question y >= k."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import inherit_check_shapes
from gpflow import Parameter
from gpflow.base import AnyNDArray, MeanAndVariance, TensorType

from .binary import normal_cdf
from .categorical import CategoricalLikelihood
from .hinge import Terms
from .level_hinge import LevelHinges
from .levels import Levels, log_probabilities


class Ordinal(CategoricalLikelihood, LevelHinges):
    r"""
    Ordered classes 0..C-1, by all thresholds (Rennie & Srebro 2005; Chu & Keerthi 2007): a
    `LevelHinge` for each question "y >= k?", k = 1..C-1, all with the same functions,

        L(y | g) = exp(-penalty / T sum_k sum_t c_t(y_k) max(0, 1 - y_k (f_t - theta_k))),

    with y_k = 1 if y >= k, else -1, and the costs of T levels t with functions f_t = b_t + sum_q
    W_tq g_q (`num_latent_gps=Q`, 2 by default). The thresholds theta are trainable (`VEM` and `ML2`
    learn them) and stay in order, so that

        P(y >= k | x) = int_0^1 P(f_t(x) > theta_k) dt

    decreases with k. P(y = k), the difference of two of these, is thus a proper distribution over
    classes, even for noisy labels. `scale` of the link multiplies the log odds of all P(y >= k).

    Labels are in one column; classes without rows are allowed. `predict_y` returns mean and
    variance of the label, [N, 1], like GPflow's `Ordinal`;
    `gpflow_bsvm.prediction.predict_probabilities` returns P(y = k) [N, C].

    :ivar num_classes: C, `num_bins` in GPflow.
    :ivar thresholds: theta, [C-1], a parameter, `bin_edges` in GPflow.
    """

    bin_edges = property(attrgetter("thresholds"))
    num_bins = property(attrgetter("num_classes"))

    def __init__(
        self,
        num_classes: int | Sequence[float] | AnyNDArray,
        penalty: float = 2.0,
        bound: str = "exact",
        levels: Levels | None = None,
        *,
        thresholds: Sequence[float] | None = None,
    ) -> None:
        """
        :param num_classes: C, at least 2; or, as in GPflow, the bin edges (`thresholds`).
        :param penalty: and bound, levels: see `LevelHinge`.
        :param thresholds: [C-1], increasing initial values; None: two margins apart.
        :raise ValueError: for other values.
        """
        C: Any = num_classes
        if np.ndim(C):
            if thresholds is not None:
                raise ValueError("bin edges are the thresholds: leave thresholds= out")
            thresholds = C
            C = np.size(C) + 1
        super().__init__(C, penalty, bound, about={"levels": levels, "latent_dim": 1})
        number = C - 1
        start = 2.0 * np.arange(number) - (number - 1) if thresholds is None else thresholds
        theta = np.asarray(start, np.float64)
        if theta.shape != (number,) or not (
            np.isfinite(theta).all() and (np.diff(theta) > 0).all()
        ):
            raise ValueError(f"thresholds must be {number} increasing numbers, got {start}")
        self.thresholds = Parameter(theta, transform=tfp.bijectors.Ascending())
        # All levels of the first threshold come first, then those of the next.
        self.W = np.tile(self.levels.W, (number, 1))
        self.b = np.tile(self.levels.b, number)

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """As in `CategoricalLikelihood`, but classes may be absent: their order is known."""
        super().check_labels(Y, minibatch=True)

    @inherit_check_shapes
    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: class numbers, [..., 1]; NaN for invalid labels."""
        hot = self.one_hot(Y, F)
        numbers = hot * tf.range(self.num_classes, dtype=hot.dtype)
        return tf.reduce_sum(numbers, axis=-1, keepdims=True)

    @inherit_check_shapes
    def terms(self, y: tf.Tensor) -> Terms:
        """:return: the hinges of all thresholds and levels, [..., 1, (C-1) T]."""
        number = self.num_classes - 1
        T = len(self.levels.t)
        k = np.repeat(np.arange(number), T)
        t = tf.constant(np.tile(self.levels.t, number), y.dtype)
        sign = tf.sign(y - tf.constant(k + 0.5, y.dtype))
        theta = tf.repeat(tf.convert_to_tensor(self.thresholds), T)
        return Terms((1 + sign * (1 - 2 * t)) / T, 1 + sign * theta, sign)

    @inherit_check_shapes
    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(y = k) at q(g) = N(Fmu, Fvar), [..., C]."""
        Fmu, Fvar = (part[..., None, :] for part in map(tf.convert_to_tensor, (Fmu, Fvar)))
        yes, no = log_probabilities(self._knots, Fmu, Fvar, tf.convert_to_tensor(self.thresholds))
        odds = self.scale * (yes - no)  # of y >= k, [..., C-1], falling with k
        # Subtract at the nearer end, so that small probabilities are accurate.
        above = tf.sigmoid(odds)
        below = tf.sigmoid(-odds)
        inner = tf.where(
            odds[..., 1:] > 0, below[..., 1:] - below[..., :-1], above[..., :-1] - above[..., 1:]
        )
        return tf.concat([below[..., :1], inner, above[..., -1:]], axis=-1)

    @inherit_check_shapes
    def favoured(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(theta_k < f_t < theta_k+1) at t = 1/2: that class k is the median of y | f."""
        mean, variance = self.decisions(Fmu, Fvar)
        below = normal_cdf((self.thresholds - mean) / tf.sqrt(variance))
        edge = tf.zeros_like(mean)
        cdf = tf.concat([edge, below, edge + 1], axis=-1)
        return cdf[..., 1:] - cdf[..., :-1]

    @inherit_check_shapes
    def label_moments(self, p: tf.Tensor) -> MeanAndVariance:
        """:return: mean and variance of the label, [..., 1]."""
        k = tf.range(self.num_classes, dtype=p.dtype)
        mean = tf.reduce_sum(p * k, axis=-1, keepdims=True)
        return mean, tf.reduce_sum(p * tf.square(k - mean), axis=-1, keepdims=True)
