"""project -> localise -> accumulate: pure functions of tensors, compiled once per structure.

Every model is Gaussian in whitened features: f(x) = Phi(x) s + m(x) + residual, s ~ N(0, I). Rows
of `features` are data, its leading dimension G is 1 where all latent functions share kernel and
inducing variable, else L. Sums over data are additive, so that a pass may go chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.functions import MeanFunction
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, MultioutputKernel
from gpflow.likelihoods import Likelihood

from ..likelihoods import sites
from ..likelihoods.base import VARIANCE_FLOOR
from .shared_graph import Compiled

#: A cavity has at most this many times the variance of its marginal.
_MOST_GROWTH = 1e6


class Rows(NamedTuple):
    """Some rows of the data, as the engine sees them."""

    X: tf.Tensor  #: [N, D]
    Y: tf.Tensor  #: [N, P]
    weight: tf.Tensor  #: [N, 1], powers of the likelihood (sample weights times minibatch scale)
    features: tf.Tensor  #: [G, N, M], projections on the whitened inducing variables
    residual: tf.Tensor  #: [N, L] or [N, 1], k(x, x) - |features|^2
    prior_mean: tf.Tensor  #: [N, L] or [N, 1]

    def take(self, index: tf.Tensor) -> Rows:
        """:return: the rows of these numbers, in this order."""
        return Rows(*(tf.gather(column, index, axis=n) for column, n in zip(self, _ROW_AXES)))

    @staticmethod
    def concatenate(parts: Sequence[Rows]) -> Rows:
        """:return: the rows of all parts, one after the other."""
        return Rows(*(tf.concat(column, n) for column, n in zip(zip(*parts), _ROW_AXES)))


_ROW_AXES = (0, 0, 0, 1, 0, 0)  # which axis of each field counts the rows


Marginals = tuple[tf.Tensor, tf.Tensor]  #: mean and variance, both [N, L]


class Statistics(NamedTuple):
    """What one pass over data leaves: additive over rows."""

    h: tf.Tensor  #: [L, M], sum of r_n Phi_n
    P: tf.Tensor  #: [L, M, M], sum of w_n Phi_n Phi_n^T
    expectation: tf.Tensor  #: [], sum of E_q log p(y_n | f_n)


def prior_factor(
    kernel: Kernel, inducing_variable: InducingVariables, jitter: tf.Tensor
) -> tf.Tensor:
    """:return: Cholesky factor Lz of Kuu + jitter I, [G, M, M]."""
    Kuu_ = Kuu(inducing_variable, kernel, jitter=jitter)
    return tf.linalg.cholesky(Kuu_[None] if len(Kuu_.shape) == 2 else Kuu_)


def project(
    kernel: Kernel,
    inducing_variable: InducingVariables,
    mean_function: MeanFunction,
    X: tf.Tensor,
    Lz: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """
    :param X: [N, D] inputs.
    :param Lz: [G, M, M], Cholesky factor of Kuu.
    :return: features (Lz^-1 Kuf)^T [G, N, M], residual variance [N, G] and prior mean [N, L].
    """
    Kuf_ = Kuf(inducing_variable, kernel, X)
    Kuf_ = Kuf_[None] if len(Kuf_.shape) == 2 else Kuf_  # [G, M, N]
    A = tf.linalg.triangular_solve(Lz, Kuf_)
    if isinstance(kernel, MultioutputKernel):
        Kff = kernel(X, full_cov=False, full_output_cov=False)  # [N, L]
    else:
        Kff = kernel(X, full_cov=False)[:, None]
    explained = tf.linalg.matrix_transpose(tf.reduce_sum(tf.square(A), axis=-2))  # [N, G]
    return tf.linalg.matrix_transpose(A), Kff - explained, mean_function(X)


def marginals(features: tf.Tensor, R: tf.Tensor, c: tf.Tensor) -> Marginals:
    """
    Marginals of Phi s under q(s_l) = N(R_l^T c_l, R_l^T R_l), for many rows: W = Phi R^T,
    mean W c, variance the squared norms of the rows of W.

    :param features: [G, N, M]; products run in their dtype.
    :param R: [L, M, M], and c: [L, M], see `gpflow_bsvm.engine.natural.Gaussian`.
    :return: mean and variance, both [N, L].
    """
    W = tf.matmul(features, tf.cast(R, features.dtype), transpose_b=True)  # [L, N, M]
    mean = tf.linalg.matvec(W, tf.cast(c, features.dtype))
    variance = tf.reduce_sum(tf.square(W), axis=-1)
    return tf.cast(tf.transpose(mean), c.dtype), tf.cast(tf.transpose(variance), c.dtype)


def marginals_of_few(features: tf.Tensor, L: tf.Tensor, h: tf.Tensor) -> Marginals:
    """
    As `marginals`, from precision P = L L^T and precision-mean h, without inverting L: the
    cheaper way where there are fewer rows than inducing points.
    """
    columns = tf.linalg.matrix_transpose(tf.broadcast_to(features, _latent_shape(features, h)))
    W = tf.linalg.triangular_solve(L, tf.concat([columns, h[..., None]], axis=-1))
    A, c = W[..., :-1], W[..., -1]
    mean = tf.linalg.matvec(A, c, transpose_a=True)
    return tf.transpose(mean), tf.transpose(tf.reduce_sum(tf.square(A), axis=-2))


def _latent_shape(features: tf.Tensor, h: tf.Tensor) -> tf.Tensor:
    return tf.concat([tf.shape(h)[:1], tf.shape(features)[1:]], axis=0)


def accumulate(likelihood: Likelihood, rows: Rows, f: Marginals) -> Statistics:
    """
    Localise the sites at the marginals `f` of Phi s and sum them up:

        h = Phi^T r,    P = Phi^T diag(w) Phi.

    A mean function m(x) is taken out: the site of f - m has precision-mean r - w m. Products run
    in the dtype of the features, everything else in that of `f`.
    """
    w, r, expectation = localise(likelihood, rows, f)
    return Statistics(*sum_sites(rows, w, r), expectation)


def localise(
    likelihood: Likelihood, rows: Rows, f: Marginals
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """
    :return: sites w and r of f(x) at the marginals `f` of Phi s, both [N, L], and the weighted sum
        of E_q log p(y_n | f_n).
    """
    mean, variance = total(rows, f)
    w, r = sites(likelihood, rows.X, mean, variance, rows.Y)
    expectation = likelihood.variational_expectations(rows.X, mean, variance, rows.Y)
    return w, r, tf.reduce_sum(rows.weight[:, 0] * expectation)


def sum_sites(rows: Rows, w: tf.Tensor, r: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param w: [N, L] precisions, and r: [N, L] precision-means, of sites of f.
    :return: h [L, M] and P [L, M, M], see `accumulate`.
    """
    features, dtype = rows.features, w.dtype
    r = r - w * rows.prior_mean
    w = tf.cast(tf.transpose(rows.weight * w), features.dtype)[..., None]  # [L, N, 1]
    r = tf.cast(tf.transpose(rows.weight * r), features.dtype)[..., None]
    P = tf.matmul(features * w, features, transpose_a=True)
    h = tf.matmul(features, r, transpose_a=True)[..., 0]
    return tf.cast(h, dtype), tf.cast(P, dtype)


def cavity(rows: Rows, f: Marginals, w: tf.Tensor, r: tf.Tensor) -> Marginals:
    """
    :param f: marginals of Phi s.
    :param w: [N, L], and r: [N, L], the sites of f(x) that are in them.
    :return: mean and variance of f(x_n) without site n, both [N, L].
    """
    mean, variance = f
    w, r = rows.weight * w, rows.weight * (r - w * rows.prior_mean)
    left = variance / tf.maximum(1 - w * variance, 1 / _MOST_GROWTH)
    return total(rows, (left * (mean / variance - r), left))


def total(rows: Rows, f: Marginals) -> Marginals:
    """:return: mean and variance of f(x): prior mean and residual added to those of Phi s."""
    mean, variance = f
    # Rounding can leave a vanishing variance below 0, and at 0 a square root has no gradient.
    return mean + rows.prior_mean, tf.maximum(variance + rows.residual, VARIANCE_FLOOR)


@Compiled
def compiled_sum_sites(w: tf.Tensor, r: tf.Tensor, *rows: tf.Tensor) -> Any:
    """`sum_sites` for eager callers."""
    return sum_sites(Rows(*rows), w, r)


@Compiled
def compiled_localise(likelihood: Likelihood, R: tf.Tensor, c: tf.Tensor, *rows: tf.Tensor) -> Any:
    """`localise` at q(s) = N(R^T c, R^T R), for eager callers."""
    seen = Rows(*rows)
    return localise(likelihood, seen, marginals(seen.features, R, c))


compiled_prior_factor = Compiled(prior_factor)
compiled_project = Compiled(project)


@Compiled
def compiled_accumulate(
    likelihood: Likelihood, R: tf.Tensor, c: tf.Tensor, *rows: tf.Tensor
) -> Statistics:
    """`accumulate` at q(s) = N(R^T c, R^T R), for eager callers."""
    seen = Rows(*rows)
    return accumulate(likelihood, seen, marginals(seen.features, R, c))


@Compiled
def compiled_marginals(R: tf.Tensor, c: tf.Tensor, *rows: tf.Tensor) -> Marginals:
    """Mean and variance of f(x), both [N, L], for eager callers."""
    seen = Rows(*rows)
    return total(seen, marginals(seen.features, R, c))
