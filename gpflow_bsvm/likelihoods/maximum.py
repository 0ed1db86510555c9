"""The largest of several independent Gaussians, by one-dimensional quadrature.

With F(u) = prod_j Phi((u - mu_j) / s_j), the distribution function of max_j f_j,

    E max_j f_j       = low + int_low^high (1 - F(u)) du,
    P(argmax_j f_j = c) = int lambda_c(u) F(u) du = d E max / d mu_c,
    d^2 E max / d mu_c^2 = int lambda_c (sum_{j != c} lambda_j) F du = 2 d E max / d v_c,

with lambda_j = d/du log Phi((u - mu_j) / s_j) >= 0. The last line, by parts, shows what a site
precision is made of: it cannot be negative. One grid of nodes per datum serves all three.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import roots_legendre

from .binary import normal_cdf, normal_pdf

#: Standard deviations beyond which a normal tail is below double precision.
REACH = 8.0
#: Panels, each twice as wide as the one before it, and Gauss-Legendre nodes in each. F leaves 0
#: where its sharpest relevant factor does, and a factor of scale s has changed 16 s later: so
#: panels that grow from there resolve every scale, up to some 50 between the largest and smallest.
PANELS, NODES = 6, 20


class Maximum(NamedTuple):
    """What is known of max_j f_j, f_j ~ N(mu_j, v_j) independent."""

    mean: tf.Tensor  #: [...], E max_j f_j
    probability: tf.Tensor  #: [..., C], P(argmax_j f_j = c); rows sum to 1
    curvature: tf.Tensor  #: [..., C], d^2 E max / d mu_c^2, not negative


class Grid(NamedTuple):
    """Nodes of an integral from where F is 0 to where it is 1."""

    low: tf.Tensor  #: [...]
    u: tf.Tensor  #: [..., Q]
    weight: tf.Tensor  #: [..., Q]


def grid(mean: tf.Tensor, scale: tf.Tensor) -> Grid:
    """
    :param mean: [..., C], and scale: [..., C].
    :return: nodes through which no gradient flows: the integrals do not depend on where they are.
    """
    mean, scale = tf.stop_gradient(mean), tf.stop_gradient(scale)
    low = tf.reduce_max(mean - REACH * scale, axis=-1)
    width = tf.reduce_max(mean + REACH * scale, axis=-1) - low
    edges = np.concatenate([[0.0], 0.5 ** np.arange(PANELS)[::-1]])
    x, w = roots_legendre(NODES)
    half = np.diff(edges)[:, None] / 2
    nodes = tf.constant((edges[:-1, None] + half * (1 + x)).ravel(), mean.dtype)
    weights = tf.constant((half * w).ravel(), mean.dtype)
    return Grid(low, low[..., None] + width[..., None] * nodes, width[..., None] * weights)


def factors(u: tf.Tensor, mean: tf.Tensor, scale: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param u: [..., Q], mean and scale: [..., C].
    :return: log Phi((u - mean) / scale) and its derivative lambda in u, both [..., Q, C].
    """
    z = (u[..., :, None] - mean[..., None, :]) / scale[..., None, :]
    # Where Phi underflows, F is 0 whatever its other factors: only the logarithm must exist.
    cdf = normal_cdf(z) + np.finfo(mean.dtype.as_numpy_dtype).tiny
    return tf.math.log(cdf), normal_pdf(z) / (cdf * scale[..., None, :])


def maximum(mean: tf.Tensor, variance: tf.Tensor) -> Maximum:
    """
    :param mean: [..., C], and variance: [..., C], positive.
    """
    scale = tf.sqrt(variance)
    nodes = grid(mean, scale)
    log_cdf, rate = factors(nodes.u, mean, scale)
    F = tf.exp(tf.reduce_sum(log_cdf, axis=-1))
    expected = nodes.low + tf.reduce_sum(nodes.weight * (1 - F), axis=-1)
    weight = (nodes.weight * F)[..., None]
    probability = tf.reduce_sum(weight * rate, axis=-2)
    others = tf.reduce_sum(rate, axis=-1, keepdims=True) - rate
    curvature = tf.maximum(tf.reduce_sum(weight * rate * others, axis=-2), 0)
    total = tf.reduce_sum(probability, axis=-1, keepdims=True)
    return Maximum(expected, probability / total, curvature)


def moments_of_maximum(mean: tf.Tensor, variance: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param mean: [..., C], and variance: [..., C], positive.
    :return: mean and variance of max_j f_j, both [...].
    """
    scale = tf.sqrt(variance)
    nodes = grid(mean, scale)
    log_cdf, _ = factors(nodes.u, mean, scale)
    above = nodes.weight * (1 - tf.exp(tf.reduce_sum(log_cdf, axis=-1)))
    first = tf.reduce_sum(above, axis=-1)
    second = 2 * tf.reduce_sum(above * (nodes.u - nodes.low[..., None]), axis=-1)
    return nodes.low + first, second - tf.square(first)
