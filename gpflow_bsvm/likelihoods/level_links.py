r"""From functions at levels of probability to the probability.

The function at level t is to be positive where P(y = 1 | x) > t. So for t uniform on (0, 1)

    P(y = 1 | x) = int_0^1 P(f_t(x) > 0) dt,

whatever the functions are made of (`log_probabilities`). Functions that shift together also tell
the P of which another row would not move them (`log_slopes`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from .base import VARIANCE_FLOOR
from .binary import normal_cdf, normal_log_cdf, normal_pdf

#: The integral over levels, or where the loss is stationary.
LINKS = ("integral", "stationary")
#: Between values of z as near as this Phi is taken to be linear, to some 1e-9.
_NEAR = 1e-4


class Knots(NamedTuple):
    """Mean and variance of f_t, linear in those of the latent functions, at J values of t."""

    t: AnyNDArray  #: [J], from 0 to 1
    b: AnyNDArray  #: [J]
    W: AnyNDArray  #: [J, Q], of the means
    W2: AnyNDArray  #: [J, Q], of the variances


def log_slopes(t: AnyNDArray, mean: tf.Tensor, variance: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param t: [T], and mean and variance of the functions there, [..., T].
    :return: log sum_k t_k Phi((1 + m_k) / s_k) and log sum_k (1 - t_k) Phi((1 - m_k) / s_k), [...]:
        the slopes of the expected losses of y = 0 and y = 1, the latter falling, in a shift of all
        functions, but for a factor. Both are accurate where they are small.
    """
    s = tf.sqrt(tf.maximum(variance, VARIANCE_FLOOR))
    rising = normal_log_cdf((1 + mean) / s) + tf.constant(np.log(t), s.dtype)
    falling = normal_log_cdf((1 - mean) / s) + tf.constant(np.log1p(-t), s.dtype)
    return tf.reduce_logsumexp(rising, axis=-1), tf.reduce_logsumexp(falling, axis=-1)


def log_probabilities(
    knots: Knots, Fmu: tf.Tensor, Fvar: tf.Tensor, threshold: Any = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param Fmu: [..., Q], and Fvar: [..., Q], of the latent functions.
    :param threshold: what f_t is to exceed where y = 1, broadcast with [...]; None: 0.
    :return: log P(y = 1) and log P(y = 0), [...], both accurate where they are small.
    """
    t, b, W, W2 = (tf.constant(part, Fmu.dtype) for part in knots)
    mean = b + tf.einsum("...q,jq->...j", Fmu, W)
    if threshold is not None:
        mean -= tf.convert_to_tensor(threshold, Fmu.dtype)[..., None]
    variance = tf.maximum(tf.einsum("...q,jq->...j", Fvar, W2), VARIANCE_FLOOR)
    z, dt = mean / tf.sqrt(variance), t[1:] - t[:-1]
    yes, no = (tf.reduce_sum(dt * part, axis=-1) for part in mean_normal_cdf(z))
    return tf.math.log(yes), tf.math.log(no)


def mean_normal_cdf(z: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param z: [..., J].
    :return: the means of Phi(z) and of Phi(-z) from each z to the next, [..., J - 1]: difference
        quotients of R(z) = z Phi(z) + phi(z).
    """
    outside = normal_cdf(-tf.abs(z))
    below = normal_pdf(z) - tf.abs(z) * outside  # R(-|z|), accurate where it is small
    width, near = z[..., 1:] - z[..., :-1], tf.abs(z[..., 1:] - z[..., :-1]) < _NEAR
    divisor = tf.where(near, tf.ones_like(width), width)
    means = []
    for side, rise in ((z, divisor), (-z, -divisor)):
        ramp, cdf = below + tf.nn.relu(side), tf.where(side < 0, outside, 1 - outside)
        quotient = (ramp[..., 1:] - ramp[..., :-1]) / rise
        means.append(tf.where(near, (cdf[..., 1:] + cdf[..., :-1]) / 2, quotient))
    return means[0], means[1]
