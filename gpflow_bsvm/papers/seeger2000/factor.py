r"""Gaussians with a factor-analyzed covariance, and their free energy (Seeger 2000, section 2).

    2 KL(q || N(m, K)) = tr K^-1 Sigma + |L^-1 (mu - m)|^2 - N + log|K| - log|Sigma|,   K = L L^T.

log|Sigma| = log|V| + log|I + C^T V^-1 C| needs only a J x J matrix. With mu = m + L a, C = L B and
V_n = u_n / [K^-1]_nn, the trace is |B|^2 + sum_n u_n. Without data, u_n = 1 is the best V if J = 0.
The best V_n is often 0, because the factors explain all of f_n (a Heywood case). Then rounding
would lose the I in I + C^T V^-1 C, so u_n is at least `LEAST_REST`, which raises F by `LEAST_REST`
/ 2 per row.
"""

from __future__ import annotations

from typing import NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow import Parameter
from gpflow.base import RegressionData
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel, MultioutputKernel
from gpflow.likelihoods import Likelihood

from ...checks import check_whole
from ...data.batch import Batch
from ...data.checks import check_data
from ...engine.contracts import jitter_of
from ...engine.natural import Natural, to_natural
from ...engine.projection import Prior, prior_factor
from ...likelihoods.labels import num_latents
from ...models.batch import BatchBSVM, check_memory
from ..as_bsvm import AsBSVM

#: Lower limit of u_n. Without it, optimizers over log u_n reach 1e-14, where F is wrong by 1e-3.
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


class FactorVGP(AsBSVM):
    r"""
    Variational Gaussian process classification with few parameters (Seeger 2000, section 2), for f
    at the N training points:

        q(f) = N(mu, V + sum_j c_j c_j^T),   V diagonal, j = 1..J,
        ELBO = sum_n E_q log p(y_n | f_n) - KL(q || p) = -F,

    F is the paper's free energy. J = 0 is a diagonal covariance (Hinton and van Camp); J = N
    includes the best Gaussian. Evaluating F costs O(N^2 J), or O(N^3) with a new kernel.

    `NestedLoop` is the paper's algorithm; as with `gpflow.models.VGP`, `gpflow.optimizers.Scipy`
    learns q and kernel together. `gpflow_bsvm.model_selection.plug_in(model)` is the paper's other
    predictor, a support vector machine with the learned kernel.

    Every direction in which K exceeds its smallest eigenvalue needs a factor. If the kernel
    includes a `gpflow.kernels.White`, for instance of variance .1, a few factors suffice. Without
    it, the bound of a small rank is loose and prefers kernels without correlations.

    :ivar q_mu: [N, 1], mu = m + L q_mu with K = L L^T, including the jitter.
    :ivar q_factors: [N, J], c_j = L q_factors_j.
    :ivar q_rest: [N, 1], V_n = q_rest_n / [K^-1]_nn, above 1e-6; initially 1.
    """

    _names_of_q = ("q_mu", "q_factors", "q_rest")
    _warns_of_duplicates = False  # equal rows are separate points that differ by the jitter
    #: Advice in errors: algorithms that fit this model, or a model to fit instead.
    fitted_by = "gpflow_bsvm.papers.seeger2000.NestedLoop, or its to_bsvm()"

    def __init__(
        self,
        data: RegressionData,
        kernel: Kernel,
        likelihood: gpflow.likelihoods.Likelihood,
        *,
        rank: int = 10,
        mean_function: gpflow.functions.MeanFunction | None = None,
        seed: int = 0,
    ) -> None:
        """
        :param data: X [N, D] and Y [N, 1].
        :param likelihood: a likelihood of one latent function, such as `Hinge(bound="exact")`,
            `NormalizedHinge` (the paper's) or GPflow's `Bernoulli`.
        :param rank: J, from 0 to N.
        :param seed: seed for the initial factors, which are small and random, because factors of 0
            would never change.
        :raise ValueError: for bad data, a rank outside 0..N, a likelihood or kernel of several
            latent functions, or an N that is too large for this machine's memory.
        """
        X, Y = check_data(likelihood, data)
        if num_latents(likelihood, Y.shape[1]) != 1 or isinstance(kernel, MultioutputKernel):
            raise ValueError(
                f"FactorVGP has one latent function, but {type(likelihood).__name__}, "
                f"{type(kernel).__name__} and Y of shape {Y.shape} need more: use BatchBSVM"
            )
        check_whole(0, rank=rank)
        if rank > len(X):
            raise ValueError(f"rank must be at most the number of rows, {len(X)}, got {rank}")
        check_memory(type(self).__name__, len(X))
        super().__init__(kernel, likelihood, mean_function, num_latent_gps=1)
        self.data = tf.convert_to_tensor(X), tf.convert_to_tensor(Y)
        self.inducing_variable = InducingPoints(X)
        gpflow.set_trainable(self.inducing_variable, False)
        self._check_features()
        self.num_data = None
        factors = np.random.default_rng(seed).normal(size=(len(X), rank)) * 0.1 / len(X) ** 0.5
        above = gpflow.utilities.positive(LEAST_REST, base="exp")
        self.q_mu = Parameter(np.zeros((len(X), 1), X.dtype))
        self.q_factors = Parameter(factors.astype(X.dtype))
        self.q_rest = Parameter(np.ones((len(X), 1), X.dtype), transform=above)

    def factored(self) -> FactoredGaussian:
        """:return: q, in the units of the prior."""
        parts = self.q_mu, self.q_factors, self.q_rest.unconstrained_variable
        return FactoredGaussian._make(map(tf.convert_to_tensor, parts))

    def assign_factored(self, q: FactoredGaussian) -> None:
        """Assign q, in the units of the prior."""
        self.q_mu.assign(q.a)
        self.q_factors.assign(q.B)
        self.q_rest.unconstrained_variable.assign(q.log_u)

    def root(self) -> PriorRoot:
        """
        Compute the root of the prior with the current kernel.

        :raise ValueError: if K has no Cholesky factor at any jitter; the message has the cause.
        """
        if tf.executing_eagerly():
            self.prior_factor()  # finds the necessary jitter
        return prior_root(self.prior, self.data[0], jitter_of(self))

    def moments(self) -> FactorMoments:
        """:return: mu [N, 1], C [N, J] and the diagonal of V [N, 1] of q(f) at the rows."""
        return moments(self.factored(), self.root())

    @check_shapes("return: []")
    def elbo(self) -> tf.Tensor:
        """:return: -F, without the priors of the hyperparameters."""
        return factored_bound(self.likelihood, self.factored(), self.root(), self._batch())

    def natural(self) -> Natural:
        """:return: q in natural parameters of L^-1 (f - m), for predictions."""
        q = self.factored()
        root = self.root()
        deviation = tf.sqrt(q.rest() / root.precision)[:, 0]
        rest = tf.linalg.triangular_solve(root.L, tf.linalg.diag(deviation))
        both = tf.concat([rest, q.B], axis=1)
        covariance = tf.matmul(both, both, transpose_b=True)
        return to_natural(tf.transpose(q.a), tf.linalg.cholesky(covariance)[None])

    def to_bsvm(self) -> BatchBSVM:
        """:return: a `BatchBSVM` with the same data, options and q."""
        model = BatchBSVM(self.data, self.kernel, self.likelihood, self.mean_function)
        model.assign_natural(self.natural())
        return model
