"""The largest of several independent Gaussians, by one-dimensional quadrature.

With F(u) = prod_j Phi((u - mu_j) / s_j), the distribution function of max_j f_j, and lambda_j =
d/du log Phi((u - mu_j) / s_j) >= 0, so that F sum_j lambda_j is the density,

    E max_j f_j            = int u F sum_j lambda_j du,
    P(argmax_j f_j = c)    = int F lambda_c du = d E max / d mu_c,
    d^2 E max / d mu_c^2   = int F lambda_c sum_{j != c} lambda_j du = 2 d E max / d v_c.

The last line, from partial integration, gives the site precisions, which are never negative. All
integrands vanish at both ends with all their derivatives; the midpoint rule therefore converges
faster than any power of the number of nodes. All integrals use one grid of nodes per datum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from scipy.special import log_ndtr, ndtri_exp

from .classes import both_sides, normal_cdf, normal_pdf

#: Normal tails are cut off at this many standard deviations: Phi(-7.5) = 3e-14.
REACH = 7.5
#: Nodes per datum: a number per e-fold growth of the grid's steps, plus a constant; see `grid`.
NODES_PER_GROWTH = 13
NODES = 22
#: This many nodes suffice for scales 1e6 apart.
MOST_NODES = 256


class Maximum(NamedTuple):
    """Moments of max_j f_j for independent f_j ~ N(mu_j, v_j)."""

    mean: tf.Tensor  #: [...], E max_j f_j
    probability: tf.Tensor  #: [..., C], P(argmax_j f_j = c); rows sum to 1
    curvature: tf.Tensor  #: [..., C], d^2 E max / d mu_c^2, not negative


class Grid(NamedTuple):
    """Nodes u = low + above of an integral over the range where F rises from 0 to 1."""

    low: tf.Tensor  #: [...]
    above: tf.Tensor  #: [..., Q]
    weight: tf.Tensor  #: [..., Q]


@check_shapes("mean: [batch..., C]", "scale: [batch..., C]", "return.above: [batch..., Q]")
def grid(mean: tf.Tensor, scale: tf.Tensor) -> Grid:
    """
    A factor of F with scale s changes only below low + 2 REACH s, because no factor begins to rise
    above low. Steps may therefore grow with the distance from low, from the scale of the sharpest
    factor to the scale of the widest. The most demanding datum determines the number of nodes.

    :return: nodes, without a gradient, because the integrals do not depend on them.
    """
    mean = tf.stop_gradient(mean)
    scale = tf.stop_gradient(scale)
    low = _where_zero(mean, scale)
    top = mean + REACH * scale
    sharp = tf.where(top > low[..., None], scale, np.inf * tf.ones_like(scale))
    unit = REACH * tf.reduce_min(sharp, axis=-1)[..., None]
    growth = tf.math.log1p((tf.reduce_max(top, axis=-1) - low)[..., None] / unit)
    # NaN is ignored; without data, the result is 0.
    most = tf.maximum(tf.reduce_max(tf.where(growth > 0, growth, 0)), 0)
    num_nodes = tf.math.ceil(tf.minimum(NODES + NODES_PER_GROWTH * most, MOST_NODES))
    midpoints = (tf.range(num_nodes, dtype=mean.dtype) + 0.5) / num_nodes
    above = unit * tf.math.expm1(growth * midpoints)
    return Grid(low, above, growth * (above + unit) / num_nodes)


def _where_zero(mean: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
    """
    If k factors are at most Phi(-reach), F <= Phi(-reach)^k: a larger k allows a smaller reach.
    With many classes of similar mean, F rises from 0 just below its median.

    :return: [...], the largest u for which this bound gives F <= Phi(-REACH), over k = 1, 2, 4, ...
    """
    lows = []
    for k in 2 ** np.arange(int(np.log2(mean.shape[-1])) + 1):
        reach = -ndtri_exp(log_ndtr(-REACH) / k)
        lows.append(tf.math.top_k(mean - reach * scale, int(k)).values[..., -1])
    return tf.reduce_max(tf.stack(lows), axis=0)


@check_shapes("mean: [batch..., C]", "variance: [batch..., C]", "return[2]: [batch..., C, Q]")
def distribution(
    mean: tf.Tensor, variance: tf.Tensor
) -> tuple[Grid, tf.Tensor, tf.Tensor, tf.Tensor]:
    """:return: nodes; F times their weights, [..., Q]; lambda_j and its sum over j."""
    scale = tf.sqrt(variance)
    nodes = grid(mean, scale)
    z = (nodes.above[..., None, :] - (mean - nodes.low[..., None])[..., None]) / scale[..., None]
    # Where one Phi underflows, another factor makes F 0 anyway: only the logarithm must be finite.
    cdf = normal_cdf(z) + np.finfo(mean.dtype.as_numpy_dtype).tiny
    rate = normal_pdf(z) / (cdf * scale[..., None])
    F = tf.exp(tf.reduce_sum(tf.math.log(cdf), axis=-2))
    return nodes, nodes.weight * F, rate, tf.reduce_sum(rate, axis=-2)


@check_shapes("mean: [batch..., C]", "variance: [batch..., C]", "return.mean: [batch...]")
def maximum(mean: tf.Tensor, variance: tf.Tensor) -> Maximum:
    """:return: the moments, for positive variances."""
    nodes, F, rate, total = distribution(mean, variance)
    share = F[..., None, :] * rate
    probability = tf.reduce_sum(share, axis=-1)
    curvature = tf.reduce_sum(share * (total[..., None, :] - rate), axis=-1)
    expected = nodes.low + tf.reduce_sum(F * total * nodes.above, axis=-1)
    probability /= tf.reduce_sum(probability, axis=-1, keepdims=True)
    return Maximum(expected, probability, tf.maximum(curvature, 0))


@check_shapes("mean: [batch..., L]", "variance: [batch..., L]", "return: [batch..., C]")
def favoured(mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    """:return: P(argmax_j f_j = c); for a single f the classes are f < 0 and f > 0."""
    if mean.shape[-1] == 1:
        return both_sides(mean, variance)
    return maximum(mean, variance).probability


@check_shapes("mean: [batch..., C]", "variance: [batch..., C]", "return[all]: [batch...]")
def moments_of_maximum(mean: tf.Tensor, variance: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """:return: mean and variance of max_j f_j, for positive variances."""
    nodes, F, _, total = distribution(mean, variance)
    density = F * total
    first = tf.reduce_sum(density * nodes.above, axis=-1, keepdims=True)
    second = tf.reduce_sum(density * tf.square(nodes.above - first), axis=-1)
    return nodes.low + first[..., 0], second
