r"""The free energy of a Gaussian with factor-analysed covariance (Seeger 2000, section 2).

    q(f) = N(mu, Sigma),   Sigma = V + sum_j c_j c_j^T,   V diagonal, j = 1..J,
    F    = -sum_n E_q log p(y_n | f_n) + KL(q || N(m, K)),
    2 KL = tr K^-1 Sigma + |L^-1 (mu - m)|^2 - N + log|K| - log|Sigma|,   K = L L^T.

log|Sigma| = log|V| + log|I + C^T V^-1 C| needs only a J x J matrix. With mu = m + L a, C = L B and
V_n = u_n / [K^-1]_nn the trace is |B|^2 + sum_n u_n. In these units the prior has a = 0; without
data the best V of rank 0 is u_n = 1, even if K is nearly singular. As in all factor analysis, the
best V_n is often 0, because the factors explain all of f_n (a Heywood case). Then I would be lost
to rounding in I + C^T V^-1 C, so u_n is at least `LEAST_REST`, which raises F by half of that per
row. The factor L and the diagonal of K^-1 cost O(N^3) per kernel; the rest costs O(N^2 J).
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.likelihoods import Likelihood

from ...data.batch import Batch
from ...engine.prior import Prior, prior_factor

#: Lower limit of u_n. Otherwise optimizers of log u_n reach 1e-14, where F is wrong by 1e-3.
LEAST_REST = 1e-6


class FactoredGaussian(NamedTuple):
    """q(f) in the units of the prior, see the module."""

    a: tf.Tensor  #: [N, 1], mean
    B: tf.Tensor  #: [N, J], factors
    log_u: tf.Tensor  #: [N, 1], log(u - LEAST_REST)

    def rest(self) -> tf.Tensor:
        """:return: u, [N, 1]."""
        return LEAST_REST + tf.exp(self.log_u)


class PriorRoot(NamedTuple):
    """Quantities computed once per kernel."""

    L: tf.Tensor  #: [N, N], Cholesky factor of K
    precision: tf.Tensor  #: [N, 1], diagonal of K^-1
    mean: tf.Tensor  #: [N, 1], m


class FactorMoments(NamedTuple):
    """q(f) itself."""

    mean: tf.Tensor  #: [N, 1], mu
    factors: tf.Tensor  #: [N, J], C
    rest: tf.Tensor  #: [N, 1], V

    def variance(self) -> tf.Tensor:
        """:return: diagonal of Sigma, [N, 1]."""
        return self.rest + tf.reduce_sum(tf.square(self.factors), axis=-1, keepdims=True)


@check_shapes("X: [N, D]", "jitter: []", "return.L: [N, N]", "return.precision: [N, 1]")
def prior_root(prior: Prior, X: tf.Tensor, jitter: tf.Tensor) -> PriorRoot:
    """:param prior: a prior with inducing points X."""
    L = prior_factor(prior, jitter)[0]
    inverse = tf.linalg.triangular_solve(L, tf.eye(tf.shape(L)[0], dtype=L.dtype))
    precision = tf.reduce_sum(tf.square(inverse), axis=0)[:, None]
    return PriorRoot(L, precision, prior.mean_function(X))


def moments(q: FactoredGaussian, root: PriorRoot) -> FactorMoments:
    """:return: mu, C and V."""
    mean = root.mean + tf.matmul(root.L, q.a)
    return FactorMoments(mean, tf.matmul(root.L, q.B), q.rest() / root.precision)


def divergence(q: FactoredGaussian, root: PriorRoot, of: FactorMoments) -> tf.Tensor:
    """:return: KL(q || N(m, K)), []."""
    A = of.factors / tf.sqrt(of.rest)
    inner = tf.matmul(A, A, transpose_a=True) + tf.eye(tf.shape(A)[1], dtype=A.dtype)
    roots = tf.linalg.diag_part(tf.linalg.cholesky(inner)), tf.linalg.diag_part(root.L)
    log_inner, log_prior = (2 * tf.reduce_sum(tf.math.log(part)) for part in roots)
    trace = tf.reduce_sum(q.rest()) + tf.reduce_sum(tf.square(q.B))
    shift = tf.reduce_sum(tf.square(q.a)) - tf.cast(tf.size(q.a), A.dtype)
    return 0.5 * (trace + shift + log_prior - tf.reduce_sum(tf.math.log(of.rest)) - log_inner)


@check_shapes("q.a: [N, 1]", "q.B: [N, J]", "q.log_u: [N, 1]", "return: []")
def factored_bound(
    likelihood: Likelihood, q: FactoredGaussian, root: PriorRoot, batch: Batch
) -> tf.Tensor:
    """:return: -F, the evidence lower bound."""
    of = moments(q, root)
    X, Y, weight = batch
    expected = likelihood.variational_expectations(X, of.mean, of.variance(), Y)
    return tf.reduce_sum(weight[:, 0] * expected) - divergence(q, root, of)
