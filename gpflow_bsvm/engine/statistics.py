"""localise -> accumulate: pure functions of tensors. Sums are additive over rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.likelihoods import Likelihood

from ..likelihoods import sites
from ..likelihoods.base import VARIANCE_FLOOR, Sites, has_hook
from .natural import Gaussian, Natural, solve
from .projection import Features, Projected
from .shared_graph import Compiled

#: Largest ratio of a leave-one-out variance of Phi s to its variance under q.
_MOST_GROWTH = 1e6


class Marginals(NamedTuple):
    """Moments of f at given rows, or of Phi s, the part of f described by q."""

    mean: tf.Tensor  #: [N, L]
    variance: tf.Tensor  #: [N, L]


class Local(NamedTuple):
    """Contributions of the labels of given rows."""

    sites: Sites  #: of f(x), [N, L]
    expectation: tf.Tensor  #: [N], weighted E_q log p(y_n | f_n)


class Statistics(NamedTuple):
    """Sums over the rows of a pass."""

    sums: Natural  #: sum of (r_n - w_n m(x_n)) Phi_n, and of w_n Phi_n Phi_n^T
    expectation: tf.Tensor  #: [], sum of E_q log p(y_n | f_n)


@check_shapes("phi: [G, N, M]", "q.R: [L, M, M]", "q.c: [L, M]", "return[all]: [N, L]")
def marginals(phi: tf.Tensor, q: Gaussian) -> Marginals:
    """
    Marginals of Phi s under q(s_l) = N(R_l^T c_l, R_l^T R_l), for many rows. The means are Phi R^T
    c; the variances are the squared norms of the rows of W = Phi R^T.

    :param phi: products run in its dtype.
    """
    return moments(phi, q.mean(), q.R)


@check_shapes("phi: [G, N, M]", "mean: [L, M]", "R: [L, M, M]", "return[all]: [N, L]")
def moments(phi: tf.Tensor, mean: tf.Tensor, R: tf.Tensor) -> Marginals:
    """:return: `marginals` under q(s_l) = N(mean_l, R_l^T R_l)."""
    s = tf.cast(mean, phi.dtype)
    R = tf.cast(R, phi.dtype)
    if phi.shape[0] == 1:  # shared features: one product is faster than a batch
        shared = tf.squeeze(phi, 0)
        L = tf.shape(R)[0]
        M = tf.shape(R)[1]
        W = tf.matmul(shared, tf.reshape(R, [L * M, M]), transpose_b=True)
        f = tf.matmul(shared, s, transpose_b=True)
        variance = tf.reduce_sum(tf.square(tf.reshape(W, [-1, L, M])), axis=-1)
    else:
        W = tf.matmul(phi, R, transpose_b=True)
        f = tf.transpose(tf.linalg.matvec(phi, s))
        variance = tf.transpose(tf.reduce_sum(tf.square(W), axis=-1))
    return Marginals(tf.cast(f, mean.dtype), tf.cast(variance, mean.dtype))


@check_shapes("phi: [G, N, M]", "q.h: [L, M]", "return[all]: [N, L]")
def batch_marginals(phi: tf.Tensor, q: Natural, few: bool) -> Marginals:
    """
    `marginals` of a minibatch under q, by the cheaper method: with P = L L^T, a few rows do not
    need the inverse of L.

    :param few: whether there are fewer rows than inducing points.
    """
    if not few:
        return marginals(phi, solve(q))
    shape = tf.concat([tf.shape(q.h)[:1], tf.shape(phi)[1:]], axis=0)
    rows = tf.linalg.matrix_transpose(tf.broadcast_to(tf.cast(phi, q.h.dtype), shape))
    L = tf.linalg.cholesky(q.P)
    W = tf.linalg.triangular_solve(L, tf.concat([rows, q.h[..., None]], axis=-1))
    A = W[..., :-1]
    mean = tf.linalg.matvec(A, W[..., -1], transpose_a=True)
    return Marginals(tf.transpose(mean), tf.transpose(tf.reduce_sum(tf.square(A), axis=-2)))


@check_shapes("features.residual: [N, .]", "f.mean: [N, L]", "return[all]: [N, L]")
def total(features: Features, f: Marginals) -> Marginals:
    """:return: marginals of f(x): `f` (of Phi s) plus prior mean and residual variance."""
    # Rounding can make a small variance negative; at 0 the square root has no gradient.
    variance = tf.maximum(f.variance + features.residual, VARIANCE_FLOOR)
    return Marginals(f.mean + features.mean, variance)


@check_shapes("f.mean: [N, L]", "return: [N]")
def expectations(likelihood: Likelihood, rows: Projected, f: Marginals) -> tf.Tensor:
    """:return: weighted E_q log p(y_n | f_n) at the marginals `f` of Phi s."""
    X, Y, weight = rows.batch
    mean, variance = total(rows.features, f)
    return weight[:, 0] * likelihood.variational_expectations(X, mean, variance, Y)


@check_shapes("f.mean: [N, L]", "return.sites.w: [N, L]", "return.expectation: [N]")
def localise(likelihood: Likelihood, rows: Projected, f: Marginals) -> Local:
    """:return: sites of f(x) and expectations at the marginals `f` of Phi s."""
    X, Y, _ = rows.batch
    mean, variance = total(rows.features, f)
    return Local(sites(likelihood, X, mean, variance, Y), expectations(likelihood, rows, f))


@check_shapes("f.mean: [N, L]", "return.sites.w: [N, L]", "return.expectation: [N]")
def local_slopes(likelihood: Likelihood, rows: Projected, f: Marginals) -> Local:
    """
    As in `localise`, but for gradients only. `expectation` is here, with fixed sites,

        (r - w Fmu0) Fmu - w Fvar / 2,    Fmu0 the value of Fmu,

    which has the derivatives of V = E_q log p, and costs no more than the sites.

    :param likelihood: a likelihood with `sites_are_slopes`, without parameters to learn.
    """
    X, Y, weight = rows.batch
    mean, variance = total(rows.features, f)
    held = tf.stop_gradient(mean)
    spread = tf.stop_gradient(variance)
    w, r = sites(likelihood, X, held, spread, Y)
    linear = tf.reduce_sum((r - w * held) * mean - w * variance / 2, axis=-1)
    return Local(Sites(w, r), weight[:, 0] * linear)


def local_for_gradient(likelihood: Likelihood) -> Callable[..., Local]:
    """:return: `local_slopes` if the likelihood allows it, else `localise`."""
    slopes = has_hook(likelihood, "sites") and has_hook(likelihood, "sites_are_slopes")
    return local_slopes if slopes and not likelihood.trainable_variables else localise


@check_shapes("sites.w: [N, L]", "sites.r: [N, L]", "return.h: [L, M]", "return.P: [L, M, M]")
def sum_sites(rows: Projected, sites: Sites) -> Natural:
    """
    h = Phi^T r and P = Phi^T diag(w) Phi, without the prior's I. The site of f - m, with the mean
    function m(x), has precision-mean r - w m. Products run in the dtype of the features.
    """
    phi = rows.features.phi
    weight = rows.batch.weight
    dtype = sites.w.dtype
    r = tf.cast(weight * (sites.r - sites.w * rows.features.mean), phi.dtype)
    w = tf.cast(weight * sites.w, phi.dtype)
    if phi.shape[0] == 1:  # shared features: one product is twice as fast as a batch
        shared = tf.squeeze(phi, 0)
        number = tf.shape(w)
        M = tf.shape(shared)[1]
        wide = tf.reshape(w[:, :, None] * shared[:, None, :], [number[0], number[1] * M])
        P = tf.reshape(tf.matmul(shared, wide, transpose_a=True), [M, number[1], M])
        P = tf.transpose(P, [1, 0, 2])
        h = tf.matmul(r, shared, transpose_a=True)
    else:
        w, r = (tf.transpose(column)[..., None] for column in (w, r))  # [L, N, 1]
        P = tf.matmul(phi * w, phi, transpose_a=True)
        h = tf.matmul(phi, r, transpose_a=True)[..., 0]
    return Natural(tf.cast(h, dtype), tf.cast(P, dtype))


@check_shapes("f.mean: [N, L]", "return.sums.h: [L, M]", "return.expectation: []")
def accumulate(likelihood: Likelihood, rows: Projected, f: Marginals) -> Statistics:
    """:return: the statistics of the sites at the marginals `f` of Phi s."""
    local = localise(likelihood, rows, f)
    return Statistics(sum_sites(rows, local.sites), tf.reduce_sum(local.expectation))


@check_shapes("f.mean: [N, L]", "return[0].w: [N, L]", "return[1].mean: [N, L]")
def cavities(likelihood: Likelihood, rows: Projected, f: Marginals) -> tuple[Sites, Marginals]:
    """:return: sites at the marginals `f` of Phi s, and leave-one-out marginals of f(x_n)."""
    X, Y, weight = rows.batch
    mean, variance = total(rows.features, f)
    local = sites(likelihood, X, mean, variance, Y)
    w = weight * local.w
    r = weight * (local.r - local.w * rows.features.mean)
    left = tf.maximum(1 - w * f.variance, 1 / _MOST_GROWTH)
    # Do not divide the mean by its variance: both are 0 far from all inducing points.
    mean = (f.mean - f.variance * r) / left
    return local, total(rows.features, Marginals(mean, f.variance / left))


def _under_q(function: Callable[..., Any]) -> Compiled:
    """:return: a function of q(s), given a function of the marginals of Phi s."""

    @functools.wraps(function)
    def of_q(likelihood: Likelihood, q: Gaussian, rows: Projected) -> Any:
        return function(likelihood, rows, marginals(rows.features.phi, q))

    return Compiled(of_q)


@check_shapes("q.c: [L, M]", "features.phi: [G, N, M]", "return[all]: [N, L]")
def marginals_of_f(q: Gaussian, features: Features) -> Marginals:
    """:return: marginals of f(x) under q(s)."""
    return total(features, marginals(features.phi, q))


@Compiled
def compiled_predict(
    likelihood: Likelihood, X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """:return: mean and variance of y, [N, P], given mean and variance of f."""
    return likelihood.predict_mean_and_var(X, mean, variance)


compiled_marginals = Compiled(marginals_of_f)
compiled_sum_sites = Compiled(sum_sites)
compiled_localise = _under_q(localise)
compiled_accumulate = _under_q(accumulate)
compiled_cavities = _under_q(cavities)
