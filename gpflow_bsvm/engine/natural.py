"""solve: from natural parameters to a Gaussian in the whitened space of the features."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes

from .shared_graph import Compiled


class Natural(NamedTuple):
    """q(s_l) = N(P_l^-1 h_l, P_l^-1): precision-means and precisions."""

    h: tf.Tensor  #: [L, M]
    P: tf.Tensor  #: [L, M, M]

    def times(self, factor: tf.Tensor) -> Natural:
        """:return: h and P, both multiplied by a number."""
        return Natural(factor * self.h, factor * self.P)


#: A point is stored as a Gaussian of this precision, in whitened features.
POINT_PRECISION = 1e12


@check_shapes("natural.h: [L, M]", "natural.P: [L, M, M]")
def without_point(natural: Natural) -> Natural:
    """
    :return: q; or, if q is a point (of `ECM`), a Gaussian around this point with the prior's
        covariance, because small steps would need thousands of steps to lower a point's precision.
    """
    precisions = tf.linalg.diag_part(natural.P)
    if tf.reduce_min(precisions) < 0.5 * POINT_PRECISION:
        return natural
    return Natural(natural.h / precisions, tf.linalg.diag(tf.ones_like(precisions)))


class Gaussian(NamedTuple):
    """q(s_l) = N(R_l^T c_l, R_l^T R_l), with its divergence from the prior N(0, I)."""

    R: tf.Tensor  #: [L, M, M], inverse Cholesky factor of the precision, lower triangular
    c: tf.Tensor  #: [L, M], R h
    kl: tf.Tensor  #: [], summed over l

    def mean(self) -> tf.Tensor:
        """:return: R_l^T c_l, [L, M]."""
        return tf.linalg.matvec(self.R, self.c, transpose_a=True)


@check_shapes("natural.h: [L, M]", "natural.P: [L, M, M]", "return.R: [L, M, M]", "return.kl: []")
def solve(natural: Natural) -> Gaussian:
    """P = L L^T:  R = L^-1,  c = R h,  KL = (|R^T c|^2 + |R|_F^2 - M - log|R|^2) / 2."""
    R = inverse_of_lower(tf.linalg.cholesky(natural.P))
    c = tf.linalg.matvec(R, natural.h)
    mean = tf.linalg.matvec(R, c, transpose_a=True)
    squares = tf.reduce_sum(tf.square(mean)) + tf.reduce_sum(tf.square(R))
    log_det = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(R)))
    kl = 0.5 * (squares - tf.cast(tf.size(c), R.dtype)) - log_det
    return Gaussian(R, c, kl)


@check_shapes("natural.h: [L, M]", "q.c: [L, M]", "share: []", "return[0].h: [L, M]")
def centre(natural: Natural, q: Gaussian, share: tf.Tensor) -> tuple[Natural, Gaussian]:
    """
    Subtract the average m of the latent means from each of them.

    If the likelihood is invariant to adding one function to all latent functions, this raises the
    ELBO by L |m|^2 / 2, the maximum along this direction. Natural-gradient steps alone reach this
    maximum slowly, at a rate 1 / (1 + |P|): the classes' different P introduce m at every step, and
    only the prior removes it.

    :param natural: natural parameters of `q`; all latent functions share features and prior.
    :param share: 1, or 0 to change nothing.
    """
    common = share * tf.reduce_mean(q.mean(), axis=0)
    h = natural.h - tf.linalg.matvec(natural.P, common)
    kl = q.kl - share * 0.5 * tf.cast(tf.shape(h)[0], h.dtype) * tf.reduce_sum(tf.square(common))
    return Natural(h, natural.P), Gaussian(q.R, tf.linalg.matvec(q.R, h), kl)


@check_shapes("old.h: [L, M]", "old.P: [L, M, M]", "sums.h: [L, M]", "sums.P: [L, M, M]", "rho: []")
def blend(old: Natural, sums: Natural, rho: tf.Tensor) -> Natural:
    """
    (1 - rho) (h, P)_old + rho (h, I + P), the natural-gradient step of size rho: a convex
    combination of positive definite precisions for 0 < rho <= 1, and hence positive definite.

    :param sums: over the sites of all data, without the prior's I."""
    P = (1 - rho) * old.P + rho * sums.P
    P = tf.linalg.set_diag(P, tf.linalg.diag_part(P) + rho)
    return in_shape(Natural((1 - rho) * old.h + rho * sums.h, P), old)


def in_shape(new: Natural, old: Natural) -> Natural:
    """:return: `new` with the static shape of `old`, as `tf.while_loop` requires."""
    return Natural(tf.ensure_shape(new.h, old.h.shape), tf.ensure_shape(new.P, old.P.shape))


@check_shapes("natural.h: [L, M]", "sums.h: [L, M]", "sums.P: [L, M, M]", "rho: []", "share: []")
def natural_step(
    natural: Natural, sums: Natural, rho: tf.Tensor, share: tf.Tensor
) -> tuple[Natural, Gaussian]:
    """:return: q after a step of size rho toward the sites' sums, centered with `share`."""
    natural = blend(natural, sums, rho)
    return centre(natural, solve(natural), share)


@check_shapes("sums.h: [L, M]", "sums.P: [L, M, M]", "share: []", "return[1].c: [L, M]")
def gaussian(sums: Natural, share: tf.Tensor) -> tuple[Natural, Gaussian]:
    """:return: q(s) of `sums` over the sites of all data, centered with `share`, see `centre`."""
    natural = Natural(sums.h, sums.P + tf.eye(tf.shape(sums.P)[-1], dtype=sums.P.dtype))
    return centre(natural, solve(natural), share)


@check_shapes("natural.h: [L, M]", "natural.P: [L, M, M]", "return.P: [L, M, M]")
def scaled_sites(natural: Natural, factor: float) -> Natural:
    """:return: (h, P - I) times `factor`: the sums of q's sites, each counted `factor` times."""
    identity = tf.eye(tf.shape(natural.P)[-1], dtype=natural.P.dtype)
    return Natural(natural.h, natural.P - identity).times(factor)


@check_shapes("factor.h: [L, M]", "q.c: [L, M]", "return: []")
def expected_factor(factor: Natural, q: Gaussian) -> tf.Tensor:
    """:return: sum_l E_q (h_l^T s_l - s_l^T P_l s_l / 2), for the h and P of `factor`."""
    mean = q.mean()
    moments = tf.reduce_sum(tf.matmul(q.R, factor.P) * q.R)
    moments += tf.reduce_sum(mean * tf.linalg.matvec(factor.P, mean))
    return tf.reduce_sum(factor.h * mean) - moments / 2


@check_shapes("Lz: [G, M, M]", "mean: [L, M]", "root: [L, M, M]", "return[1]: [L, M, M]")
def whiten(Lz: tf.Tensor, mean: tf.Tensor, root: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """:return: mean and covariance root of q(Lz^-1 u), given mean and root of q(u)."""
    Lz = tf.broadcast_to(Lz, tf.shape(root))
    mean = tf.linalg.triangular_solve(Lz, mean[..., None])[..., 0]
    return mean, tf.linalg.triangular_solve(Lz, root)


@check_shapes("natural.h: [L, M]", "natural.P: [L, M, M]", "return[1]: [L, M, M]")
def to_mean_and_root(natural: Natural) -> tuple[tf.Tensor, tf.Tensor]:
    """
    Mean and lower triangular root of the covariance, as GPflow stores a Gaussian, from a single
    Cholesky factor. Factorizing with rows and columns reversed gives P = U U^T, with U upper
    triangular; the root is U^-T. If this fails, as it can at a condition beyond 1 / rounding (where
    `solve` may still work), the root is V^T, with R = Q V and V upper triangular.

    :return: mean and root.
    """
    U = tf.reverse(tf.linalg.cholesky(tf.reverse(natural.P, [-2, -1])), [-2, -1])
    root = inverse_of_lower(tf.linalg.matrix_transpose(U))
    known = tf.reduce_all(tf.math.is_finite(root))
    root = tf.cond(known, lambda: root, partial(root_by_rotation, natural))
    mean = tf.linalg.matvec(root, tf.linalg.matvec(root, natural.h, transpose_a=True))
    return mean, root


def root_by_rotation(natural: Natural) -> tf.Tensor:
    """:return: the root [L, M, M] of P^-1 by a QR decomposition, if Cholesky fails."""
    return _lower(solve(natural).R)


@check_shapes("covariance: [L, N, N]", "least: []", "return: [L, N, N]")
def root_of_covariance(covariance: tf.Tensor, least: tf.Tensor) -> tf.Tensor:
    """
    :param least: a positive lower bound of the eigenvalues, in exact arithmetic (a jitter).
    :return: the Cholesky factor; if rounding prevents it, a lower triangular root of the covariance
        whose eigenvalues below `least` are raised to `least`.
    """
    L = tf.linalg.cholesky(covariance)
    if np.isfinite(L).all():
        return L
    values, vectors = tf.linalg.eigh(covariance)
    return _lower(
        tf.sqrt(tf.maximum(values, least))[..., None] * tf.linalg.matrix_transpose(vectors)
    )


def _lower(R: tf.Tensor) -> tf.Tensor:
    """:return: the lower triangular root of R^T R, with a positive diagonal."""
    V = tf.linalg.qr(R).r
    signs = tf.where(tf.linalg.diag_part(V) < 0, -1, 1)
    return tf.linalg.matrix_transpose(V * tf.cast(signs, V.dtype)[..., None])


@check_shapes("mean: [L, M]", "root: [L, M, M]", "return.h: [L, M]", "return.P: [L, M, M]")
def to_natural(mean: tf.Tensor, root: tf.Tensor) -> Natural:
    """:return: h = P mean and P = root^-T root^-1, for a lower triangular root."""
    inverse = inverse_of_lower(root)
    P = tf.matmul(inverse, inverse, transpose_a=True)
    return Natural(tf.linalg.matvec(P, mean), P)


@Compiled
@check_shapes("q_mu: [M, L]", "q_sqrt: [L, M, M]", "return.h: [L, M]", "return.P: [L, M, M]")
def compiled_natural(
    q_mu: tf.Tensor, q_sqrt: tf.Tensor, prior_factor: tuple[tf.Tensor, ...]
) -> Natural:
    """:return: q(u) in natural parameters of Lz^-1 u; `prior_factor` is empty if q is whitened."""
    mean = tf.transpose(q_mu)
    root = q_sqrt
    for Lz in prior_factor:
        mean, root = whiten(Lz, mean, root)
    return to_natural(mean, root)


@check_shapes("L: [batch..., M, M]", "return: [batch..., M, M]")
def inverse_of_lower(L: tf.Tensor) -> tf.Tensor:
    """:return: L^-1 of lower triangular L."""
    identity = tf.eye(tf.shape(L)[-1], batch_shape=tf.shape(L)[:-2], dtype=L.dtype)
    return tf.linalg.triangular_solve(L, identity)


compiled_solve = Compiled(solve)
compiled_gaussian = Compiled(gaussian)
compiled_natural_step = Compiled(natural_step)
