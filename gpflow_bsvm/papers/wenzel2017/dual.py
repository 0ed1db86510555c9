"""The sparse Bayesian SVM with stored data, parametrized by sites instead of q."""

from __future__ import annotations

from typing import Any

import gpflow
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.models.util import inducingpoint_wrapper

from ...checks import check_whole
from ...data.checks import check_data
from ...data.sources import ArraySource
from ...engine.contracts import check_width, chunk_rows, jitter_of, shares_shifts
from ...engine.natural import Natural, compiled_solve, gaussian
from ...engine.projection import Floats, Projector, project_batch
from ...engine.statistics import sum_sites
from ...inference.outcome import at_rows, check_margins, warn_of_digits
from ...inference.vem import SiteAscent, site_bound
from ...likelihoods.base import Sites
from ...likelihoods.labels import num_latents
from ...models.sparse import BSVM
from ..as_bsvm import AsBSVM


class DualBSVM(AsBSVM):
    r"""
    The model of `BSVM` in the dual parametrization (Adam et al. 2021, with a site for each datum):

        q(s) = N(P^-1 h, P^-1),  P = I + Phi^T diag(w) Phi,  h = Phi^T r,  u = Lz s,
        F    = sum_n E_q log L(y_n | f_n) - KL(q || p),

    with sites (w_n, r_n) instead of `q_mu` and `q_sqrt`, so that q follows the hyperparameters. At
    fixed sites F is a smooth lower bound of the evidence, and needs neither a learning rate nor
    data as argument: as with `gpflow.models.SGPR`,
    `gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)` learns
    kernel, mean function and inducing variable. `update_sites` moves the sites; the constructor
    calls it, because sites of 0 ignore the data. A fit alternates between both.
    (`gpflow_bsvm.inference.VEM` does so for a `BSVM`, chunk by chunk; here a pass needs [N, M]
    features at once.)

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
        Calls `update_sites()` at the end, a few passes over the data.

        :param data: X [N, D] and Y [N, P].
        :param num_latent_gps: L; None: the number that the likelihood needs, or the number of
            columns of Y.
        :raise ValueError: for bad data, and as in `BSVM`.
        """
        X, Y = check_data(likelihood, data)
        num_latent_gps = num_latent_gps or num_latents(likelihood, Y.shape[1])
        super().__init__(kernel, likelihood, mean_function, num_latent_gps)
        self.inducing_variable = inducingpoint_wrapper(inducing_variable)
        self._check_features()
        check_width(self, X, Y)
        self.data = (tf.convert_to_tensor(X), tf.convert_to_tensor(Y))
        zeros = tf.zeros([len(X), num_latent_gps], X.dtype)
        self.sites = Sites(tf.Variable(zeros, trainable=False), tf.Variable(zeros, trainable=False))
        self.num_data = None
        self.update_sites()

    def elbo(self) -> tf.Tensor:
        """:return: F, [], without the priors of the hyperparameters."""
        how = Floats(jitter_of(self))
        rows = self._batch()
        share = shares_shifts(self)
        return site_bound(self.likelihood, self.prior, rows, self._sites(), how, share)

    def update_sites(self, sweeps: int = 3) -> float:
        """
        Move the sites towards the likelihood's sites at the current q, each time by rho = 1, or
        less if F would decrease.

        :param sweeps: number of moves, at least 1.
        :return: F.
        :raise FloatingPointError: if float64 cannot resolve a margin of 1 under the prior.
        """
        check_whole(1, sweeps=sweeps)
        features = Projector(self.prior, self.prior_factor())(self.data[0][:100])
        check_margins(self.likelihood, features)
        ascent = SiteAscent(self, self._source(), self._sites())
        try:
            ascent.climb(sweeps)
        finally:  # after an interrupt: the best so far
            for variable, value in zip(self.sites, ascent.point.sites):
                variable.assign(value)
        f, before = at_rows(self, self._source(), compiled_solve(self.natural()))
        warn_of_digits(f, before)
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
        """:return: the sites, as tensors."""
        w, r = self.sites
        return Sites(tf.convert_to_tensor(w), tf.convert_to_tensor(r))

    def _source(self) -> ArraySource:
        X, Y, weight = self._batch()
        return ArraySource(X, Y, weight, chunk_rows(self))
