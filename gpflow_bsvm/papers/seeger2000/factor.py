"""Gaussians with factor-analysed covariance over f at all training rows (Seeger 2000)."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow import Parameter
from gpflow.base import AnyNDArray, RegressionData
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel, MultioutputKernel
from gpflow.likelihoods import Bernoulli

from ...checks import check_whole
from ...data.checks import check_data
from ...engine.contracts import jitter_of
from ...engine.natural import Natural, to_natural
from ...likelihoods.labels import check_binary_labels, num_latents
from ...models.batch import BatchBSVM, check_memory
from ..as_bsvm import AsBSVM
from .factored import (
    LEAST_REST,
    FactoredGaussian,
    FactorMoments,
    PriorRoot,
    factored_bound,
    moments,
    prior_root,
)


class FactorVGP(AsBSVM):
    r"""
    Variational Gaussian process classification with few parameters (Seeger 2000, section 2), for f
    at the N training points:

        q(f) = N(mu, V + sum_j c_j c_j^T),   V diagonal, j = 1..J,
        ELBO = sum_n E_q log p(y_n | f_n) - KL(q || p) = -F,

    F is the paper's free energy. q has N (J + 2) parameters, while `gpflow.models.VGP` has
    N (N + 3) / 2: J = 0 is a diagonal covariance (Hinton and van Camp), J = N the best Gaussian. An
    evaluation costs O(N^2 J), with a new kernel O(N^3).

    `NestedLoop` is the paper's algorithm; as with VGP, `gpflow.optimizers.Scipy` learns q and
    kernel together. `gpflow_bsvm.model_selection.plug_in(model)` is the paper's other prediction,
    by a support vector machine with the learned kernel.

    V cannot represent a smooth kernel's correlations between neighbours: every direction in which K
    exceeds its smallest eigenvalue needs a factor. If the kernel includes a `gpflow.kernels.White`,
    for instance of variance .1, few factors suffice. Otherwise the bound of a small rank is loose
    and prefers kernels without correlations.

    Parameters are in the units of the prior, K = L L^T with the jitter: mu = m + L q_mu,
    c_j = L q_factors_j, V_n = q_rest_n / [K^-1]_nn.

    :ivar q_mu: [N, 1].
    :ivar q_factors: [N, J].
    :ivar q_rest: [N, 1], above 1e-6; initially 1, and below 1 at the best q of a log-concave
        likelihood. If the factors explain all of f_n, it tends to 1e-6 (the bound loses 5e-7).
    """

    _names_of_q = ("q_mu", "q_factors", "q_rest")
    #: Advice in errors: algorithms that fit it, or a model to fit instead.
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
        :param seed: seed of the initial factors, which are small and random, because factors of 0
            would never change.
        :raise ValueError: for bad data, a rank outside 0..N, a likelihood or kernel of several
            latent functions, or an N that is too large for this machine's memory.
        """
        X, Y = check_data(likelihood, *data)
        _check_one_latent(kernel, likelihood, Y)
        _check_rank(rank, len(X))
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

    def _warn_of_duplicates(self) -> None:
        """Warn of equal rows: they count as separate points that differ by the jitter."""

    def factored(self) -> FactoredGaussian:
        """:return: q, in the units of the prior."""
        return FactoredGaussian(
            a=tf.convert_to_tensor(self.q_mu),
            B=tf.convert_to_tensor(self.q_factors),
            log_u=tf.convert_to_tensor(self.q_rest.unconstrained_variable),
        )

    def assign_factored(self, q: FactoredGaussian) -> None:
        """Store q."""
        self.q_mu.assign(q.a)
        self.q_factors.assign(q.B)
        self.q_rest.unconstrained_variable.assign(q.log_u)

    def root(self) -> PriorRoot:
        """
        Compute the root of the prior with the current kernel.

        :raise ValueError: if K has no Cholesky factor at any jitter, with the likely cause.
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


def _check_rank(rank: Any, num_rows: int) -> None:
    """:raise ValueError: unless the rank is a whole number from 0 to N."""
    check_whole(0, rank=rank)
    if rank > num_rows:
        raise ValueError(
            f"rank must be at most the number of rows, {num_rows}, got {rank}; N factors suffice "
            "for any Gaussian"
        )


def _check_one_latent(kernel: Any, likelihood: Any, Y: AnyNDArray) -> None:
    """:raise ValueError: for several latent functions, or labels of other than two classes."""
    needed = num_latents(likelihood, Y.shape[1])
    if needed != 1 or isinstance(kernel, MultioutputKernel):
        raise ValueError(
            f"FactorVGP has one latent function, but {type(likelihood).__name__} for Y of "
            f"{Y.shape[1]} columns with {type(kernel).__name__} needs more; use "
            "gpflow_bsvm.models.BatchBSVM, which has a full covariance"
        )
    if isinstance(likelihood, Bernoulli):  # treats every label but 1 as 0
        check_binary_labels(Y)
