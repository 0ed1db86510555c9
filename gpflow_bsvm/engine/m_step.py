r"""The ELBO as a function of the hyperparameters theta, at fixed sites.

With a fixed site (w_n, r_n) for each datum and latent function, every theta defines a q:

    q(s) = N(P^-1 h, P^-1),   P(theta) = I + Phi^T diag(w) Phi,   h(theta) = Phi^T r,
    F(theta) = sum_n E_q log p(y_n | f_n) - KL(q || N(0, I)) + log prior(theta),

a lower bound at every theta (the dual view of Adam et al. 2021, t-SVGP, with a site for every
datum). F needs no refits: it is a single smooth function, suitable for quasi-Newton methods.
Gradients are computed chunk by chunk: memory does not grow with N.
"""

from __future__ import annotations

from functools import partial

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..data.batch import Batch
from ..data.passes import sum_over
from ..data.sources import Source
from ..likelihoods.hooks import Sites
from .contracts import Model, jitter_of, shares_shifts
from .hyperparameters import Hyperparameters, value_and_gradient
from .natural import Gaussian, Natural, compiled_gaussian, gaussian
from .prior import Prior
from .projection import Floats, project_batch
from .shared_graph import Compiled
from .statistics import localise, marginals, sum_sites


@check_shapes("batch.X: [N, D]", "sites.w: [N, L]", "share: []", "return: []")
def site_bound(
    likelihood: Likelihood, prior: Prior, batch: Batch, sites: Sites, how: Floats, share: tf.Tensor
) -> tf.Tensor:
    """:return: F of a single chunk, without the hyperparameters' log density; see `centre`."""
    rows = project_batch(prior, batch, how)
    q = gaussian(sum_sites(rows, sites), share)[1]
    f = marginals(rows.features.phi, q)
    return tf.reduce_sum(localise(likelihood, rows, f).expectation) - q.kl


@check_shapes("q.c: [L, M]", "batch.X: [N, D]", "return: []")
def expectation(
    likelihood: Likelihood, prior: Prior, q: Gaussian, how: Floats, batch: Batch
) -> tf.Tensor:
    """:return: sum of E_q log p(y_n | f_n) under q(s)."""
    rows = project_batch(prior, batch, how)
    f = marginals(rows.features.phi, q)
    return tf.reduce_sum(localise(likelihood, rows, f).expectation)


@Compiled
@check_shapes("batch.X: [N, D]", "sites.w: [N, L]", "return.h: [L, M]", "return.P: [L, M, M]")
def compiled_sums(prior: Prior, how: Floats, batch: Batch, sites: Sites) -> Natural:
    """`sum_sites` of unprojected rows."""
    return sum_sites(project_batch(prior, batch, how), sites)


@check_shapes("sites.w: [N, L]", "weights.h: [L, M]", "return: []")
def _weighted_sums(
    likelihood: Likelihood, prior: Prior, how: Floats, weights: Natural, batch: Batch, sites: Sites
) -> tf.Tensor:
    """:return: a number whose gradient is a vector-Jacobian product of the sums."""
    h, P = sum_sites(project_batch(prior, batch, how), sites)
    return tf.reduce_sum(weights.h * h) + tf.reduce_sum(weights.P * P)


@check_shapes("sums.h: [L, M]", "sums.P: [L, M, M]", "slope.c: [L, M]", "share: []", "return: []")
def _through_q(
    likelihood: Likelihood, prior: Prior, sums: Natural, slope: Gaussian, share: tf.Tensor
) -> tf.Tensor:
    """:return: -KL, with F's gradient in h and P: the gradient of -KL plus `slope` through q."""
    _, q = gaussian(sums, share)
    R, c = (part - tf.stop_gradient(part) for part in (q.R, q.c))  # 0: only adds gradients
    return tf.reduce_sum(slope.R * R) + tf.reduce_sum(slope.c * c) - q.kl


_of_bound = value_and_gradient(site_bound)
_of_expectation = value_and_gradient(expectation, by_first=True)
_of_sums = value_and_gradient(_weighted_sums)
_of_q = value_and_gradient(_through_q, by_first=True)
compiled_expectation = Compiled(expectation)


class SiteBound:
    """
    F of a model as a function of the sites, at the current parameters. TensorFlow's
    InvalidArgumentError means that a matrix has no Cholesky factor.
    """

    def __init__(self, model: Model, source: Source, dtype: tf.DType | None = None) -> None:
        """:param dtype: precision of the large products; None: GPflow's default float."""
        self.hyperparameters = Hyperparameters(model)
        self._model = model
        self._source = source
        self._share = shares_shifts(model)
        self._one = tf.ones([], dtype or default_float())
        graphs = (_of_bound,) if source.one_chunk else (_of_expectation, _of_sums, _of_q)
        self._graphs = [self.hyperparameters.bind(graph) for graph in graphs]

    def value_and_gradient(self, sites: Sites) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """
        :param sites: the sites of all rows.
        :return: F, and its gradient in each of the hyperparameters' variables.
        """
        how = Floats(jitter_of(self._model), self._one)
        if self._source.one_chunk:
            batch = next(iter(self._source.chunks()))
            (of_bound,) = self._graphs
            value, gradient = of_bound(batch, sites, how, self._share)
        else:
            value, gradient = self._by_chunks(sites, how)
        return self.hyperparameters.with_prior(value, gradient)

    def _by_chunks(self, sites: Sites, how: Floats) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """As in `value_and_gradient`, by the chain rule through q, h and P, in three passes."""
        data = self._source
        share = self._share
        expected, of_sums, of_q = self._graphs
        sums = sum_over(data, partial(compiled_sums.bind(self._model.prior), how), sites)
        _, q = compiled_gaussian(sums, share)
        value, gradient, slope = sum_over(data, partial(expected, q, how))
        others, of_prior, weights = of_q(sums, slope, share)
        _, rest = sum_over(data, partial(of_sums, how, weights), sites)
        gradients = zip(gradient, rest, of_prior)
        return value + others, [tf.add_n(parts) for parts in gradients]
