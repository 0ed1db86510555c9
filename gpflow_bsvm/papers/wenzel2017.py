"""Wenzel et al. (2017): sites as parameters, the paper's inducing points, its link as printed."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray, RegressionData, TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from scipy.spatial.distance import cdist
from sklearn.mixture import GaussianMixture

from .. import likelihoods
from ..checks import check_choice, check_whole
from ..data.checks import check_data
from ..data.sources import ArraySource
from ..engine.contracts import (
    check_floats,
    check_width,
    chunk_rows,
    features_of,
    jitter_of,
    shares_shifts,
)
from ..engine.natural import Natural, compiled_solve, gaussian
from ..engine.projection import Floats, project_batch
from ..engine.statistics import sum_sites
from ..inducing_points.points import SUBSAMPLE, at_most, checked, distinct_rows, some_rows
from ..inference.outcome import at_rows, check_margins, warn_of_digits
from ..inference.vem import SiteAscent, site_bound
from ..likelihoods.base import Sites
from ..likelihoods.labels import num_latents
from ..models.sparse import BSVM, as_inducing
from .as_bsvm import AsBSVM

__all__ = ["DualBSVM", "Hinge", "afkmc2", "gaussian_mixture"]


class DualBSVM(AsBSVM):
    r"""
    The model of `BSVM` in the dual parametrization (Adam et al. 2021, with a site for each datum):

        q(s) = N(P^-1 h, P^-1),  P = I + Phi^T diag(w) Phi,  h = Phi^T r,  u = Lz s,
        F    = sum_n E_q log L(y_n | f_n) - KL(q || p),

    where sites (w_n, r_n) replace `q_mu` and `q_sqrt`, so that q changes with the hyperparameters.
    At fixed sites, F is a smooth lower bound of the evidence, and needs neither a learning rate nor
    data as arguments: as with `gpflow.models.SGPR`,
    `gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)` learns
    kernel, mean function and inducing variable. `update_sites` moves the sites; the constructor
    calls it, because sites of 0 ignore the data. A fit alternates between `minimize` and
    `update_sites`. (`gpflow_bsvm.inference.VEM` does so for a `BSVM`, chunk by chunk; here a pass
    needs all [N, M] features at once.)

    :ivar sites: (w, r), both [N, L], not trainable.
    """

    def __init__(
        self,
        data: RegressionData,
        kernel: Kernel,
        likelihood: gpflow.likelihoods.Likelihood,
        inducing_variable: InducingVariables | Any,
        *,
        mean_function: gpflow.functions.MeanFunction | None = None,
        num_latent_gps: int | None = None,
    ) -> None:
        """
        Calls `update_sites()` at the end, which makes a few passes over the data.

        :param data: X [N, D] and Y [N, P].
        :param num_latent_gps: L; None: the number that the likelihood needs, or the number of
            columns of Y.
        :raise ValueError: for bad data, and as in `BSVM`.
        """
        X, Y = check_data(likelihood, data)
        num_latent_gps = num_latents(likelihood, Y.shape[1], num_latent_gps)
        super().__init__(kernel, likelihood, mean_function, num_latent_gps)
        self.inducing_variable = as_inducing(inducing_variable)
        self._check_features()
        check_floats(self)
        check_width(self, X, Y)
        self.data = (tf.convert_to_tensor(X), tf.convert_to_tensor(Y))
        zeros = tf.zeros([len(X), num_latent_gps], X.dtype)
        self.sites = Sites(tf.Variable(zeros, trainable=False), tf.Variable(zeros, trainable=False))
        self.num_data = None
        self.update_sites()

    def elbo(self) -> tf.Tensor:
        """:return: F, [], without the priors of the hyperparameters."""
        how = Floats(jitter_of(self))
        share = shares_shifts(self)
        return site_bound(self.likelihood, self.prior, self._batch(), self._sites(), how, share)

    def update_sites(self, sweeps: int = 3) -> float:
        """
        Move the sites toward the likelihood's sites at the current q, each time by a fraction rho
        of the way: 1, or less if F would decrease.

        :param sweeps: number of moves, at least 1.
        :return: F.
        :raise FloatingPointError: if float64 cannot resolve a margin of 1 under the prior.
        """
        check_whole(1, sweeps=sweeps)
        check_margins(self.likelihood, features_of(self, self.data[0][:100]))
        source = ArraySource(*self._batch(), chunk_rows(self))
        ascent = SiteAscent(self, source, self._sites())
        try:
            ascent.climb(sweeps)
        finally:  # after an interrupt: the best so far
            for variable, value in zip(self.sites, ascent.point.sites):
                variable.assign(value)
        warn_of_digits(self.likelihood, *at_rows(self, source, compiled_solve(self.natural())))
        return float(ascent.point.value)

    def natural(self) -> Natural:
        """:return: q in natural parameters, in the whitened space of the features."""
        rows = project_batch(self.prior, self._batch(), Floats(jitter_of(self)))
        return gaussian(sum_sites(rows, self._sites()), shares_shifts(self))[0]

    def to_bsvm(self) -> BSVM:
        """:return: a `BSVM` with the same options and q."""
        model = BSVM(
            self.kernel,
            self.likelihood,
            self.inducing_variable,
            mean_function=self.mean_function,
            num_latent_gps=self.num_latent_gps,
        )
        model.assign_natural(self.natural())
        return model

    def _sites(self) -> Sites:
        return Sites._make(map(tf.convert_to_tensor, self.sites))


class Hinge(likelihoods.Hinge):
    """
    `gpflow_bsvm.likelihoods.Hinge` with p(y = 1) = Phi(Fmu / (1 + Fvar)): eq. 13 of the paper as
    printed, without the root, but with one sign changed. The paper subtracts q's own part of Fvar,
    which can make a variance negative; here it is added. Use it only to reproduce the paper's
    tables.
    """

    def probit_argument(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: z with p(y = 1) = Phi(z), [..., L]."""
        variance = 1 + tf.square(self.scale) * tf.maximum(Fvar, 0)
        return (self.scale * Fmu + self.offset) / variance


def gaussian_mixture(
    X: Any,
    num_inducing: int,
    *,
    seed: int | None = 0,
    subsample: int = SUBSAMPLE,
    covariance: str = "full",
    max_iter: int = 100,
) -> AnyNDArray:
    """
    Means of a mixture of M Gaussians (a choice of Wenzel et al. 2017, section 5.5), by
    scikit-learn's expectation maximization, which is initialized by k-means and may warn
    (ConvergenceWarning). With full covariances it is no better than `kmeans`, and far slower.

    Arguments and errors are as in `kmeans`.

    :param covariance: covariance of the Gaussians: "full", "tied", "diag" or "spherical".
    :param max_iter: largest number of iterations.
    :raise ValueError: for another covariance, fewer than 1 iteration, or, from scikit-learn, for a
        mixture that cannot be fitted.
    """
    check_choice(("full", "tied", "diag", "spherical"), covariance=covariance)
    check_whole(1, max_iter=max_iter)
    X, distinct, state = some_rows(X, num_inducing, subsample, seed)
    if len(distinct) <= num_inducing:
        return at_most(distinct, num_inducing)
    mixture = GaussianMixture(
        num_inducing, covariance_type=covariance, max_iter=max_iter, random_state=state
    ).fit(X)
    return at_most(distinct_rows(mixture.means_.astype(X.dtype)), num_inducing)


def afkmc2(
    X: Any, num_inducing: int, *, seed: int | None = 0, chain_length: int = 200
) -> AnyNDArray:
    """
    Distant rows of X, chosen by the Markov chains of AFK-MC2 (Bachem et al. 2016; the choice of
    Wenzel et al. 2017, section 5.5): like k-means++ seeding, but with a single pass over the data.

    Arguments and errors are as in `kmeans`.

    :param chain_length: steps of the chain for each point; longer chains are closer to k-means++.
    """
    check_whole(1, chain_length=chain_length)
    X = distinct_rows(checked(X, num_inducing))
    if len(X) <= num_inducing:
        return at_most(X, num_inducing)
    generator = np.random.default_rng(seed)
    chosen = [int(generator.integers(len(X)))]
    squares = cdist(X, X[chosen], "sqeuclidean")[:, 0]
    proposal = 0.5 * squares / squares.sum() + 0.5 / len(X)
    shape = (num_inducing - 1, chain_length)
    candidates = np.searchsorted(np.cumsum(proposal)[:-1], generator.random(shape))
    for drawn, uniform in zip(candidates, generator.random(shape)):
        squares = cdist(X[drawn], X[chosen], "sqeuclidean").min(axis=1)
        ratio = squares / proposal[drawn]
        chosen.append(int(drawn[_end_of_chain(ratio, uniform)]))
    return at_most(distinct_rows(X[chosen]), num_inducing)


def _end_of_chain(ratio: AnyNDArray, uniform: AnyNDArray) -> int:
    """:return: the last state of a Metropolis chain over 0, 1, 2, ... with these densities."""
    state = 0
    for step in range(1, len(ratio)):
        if ratio[step] > uniform[step] * ratio[state]:
            state = step
    return state
