r"""The ELBO as a function of the hyperparameters theta, at fixed sites.

Sites (w_n, r_n), one for each datum and latent function, make a q of every theta:

    q(s) = N(P^-1 h, P^-1),   P(theta) = I + Phi^T diag(w) Phi,   h(theta) = Phi^T r,
    F(theta) = sum_n E_q log p(y_n | f_n) - KL(q || N(0, I)) + log prior(theta),

a lower bound at every theta (the dual view of Adam et al. 2021, t-SVGP, with a site for every
datum). Nothing is to be refitted inside F, so that a quasi-Newton method sees one smooth function.
Gradients go through the features chunk by chunk: memory does not grow with N.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import tensorflow as tf
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..data.batch import Batch
from ..data.passes import sum_over
from ..data.sources import Source
from ..likelihoods.base import Sites
from .contracts import Model, jitter_of, shares_shifts
from .hyperparameters import Hyperparameters, differentiable
from .natural import Gaussian, Natural, compiled_gaussian, gaussian
from .projection import Prior, look_at
from .shared_graph import Compiled
from .statistics import localise, marginals, sum_sites


def site_bound(
    likelihood: Likelihood,
    prior: Prior,
    _: tuple[()],
    batch: Batch,
    sites: Sites,
    jitter: tf.Tensor,
    share: tf.Tensor,
    *,
    dtype: tf.DType | None = None,
) -> tf.Tensor:
    """
    F without the prior, of data that fit into memory at once.

    :param jitter: [], of Kuu.
    :param share: [], see `gpflow_bsvm.engine.natural.centre`.
    :param dtype: of the large products.
    """
    rows = look_at(prior, batch, jitter, dtype)
    q = gaussian(sum_sites(rows, sites), share)[1]
    local = localise(likelihood, rows, marginals(rows.features.phi, q.R, q.c))
    return tf.reduce_sum(local.expectation) - q.kl


def expectation(
    likelihood: Likelihood,
    prior: Prior,
    q: Gaussian,
    batch: Batch,
    jitter: tf.Tensor,
    *,
    dtype: tf.DType | None = None,
) -> tf.Tensor:
    """:return: sum of E_q log p(y_n | f_n) under q(s)."""
    rows = look_at(prior, batch, jitter, dtype)
    local = localise(likelihood, rows, marginals(rows.features.phi, q.R, q.c))
    return tf.reduce_sum(local.expectation)


def _sums(
    prior: Prior, batch: Batch, sites: Sites, jitter: tf.Tensor, *, dtype: tf.DType
) -> Natural:
    return sum_sites(look_at(prior, batch, jitter, dtype), sites)


def _weighted_sums(
    likelihood: Likelihood,
    prior: Prior,
    _: tuple[()],
    batch: Batch,
    sites: Sites,
    jitter: tf.Tensor,
    weights: Natural,
    *,
    dtype: tf.DType,
) -> tf.Tensor:
    """:return: of which the gradient is that of `_sums`, weighted (a vector-Jacobian product)."""
    h, P = _sums(prior, batch, sites, jitter, dtype=dtype)
    return tf.reduce_sum(weights.h * h) + tf.reduce_sum(weights.P * P)


def _through_q(
    likelihood: Likelihood, prior: Prior, sums: Natural, slope: Gaussian, share: tf.Tensor
) -> tf.Tensor:
    """:return: -KL, with the gradient of F in h and P: that of KL, and by `slope` through q."""
    _, q = gaussian(sums, share)
    R, c = (part - tf.stop_gradient(part) for part in (q.R, q.c))  # 0, but for the gradient
    return tf.reduce_sum(slope.R * R) + tf.reduce_sum(slope.c * c) - q.kl


class _Graphs(NamedTuple):
    """What `SiteBound` calls; all but the last return gradients, too."""

    at_once: Compiled
    expected: Compiled
    of_sums: Compiled
    sums: Compiled


@functools.cache
def _graphs(dtype: tf.DType) -> _Graphs:
    """:return: with the large products in this dtype."""
    with_dtype = functools.partial(functools.partial, dtype=dtype)
    return _Graphs(
        differentiable(with_dtype(site_bound), with_prior=True),
        differentiable(with_dtype(expectation), made_by=(_graph, (dtype.name, "expected"))),
        differentiable(with_dtype(_weighted_sums), made_by=(_graph, (dtype.name, "of_sums"))),
        Compiled(with_dtype(_sums), made_by=(_graph, (dtype.name, "sums"))),
    )


def _graph(dtype: str, name: str) -> Compiled:
    """:return: the one of `_Graphs` of this name, in another process."""
    graph: Compiled = getattr(_graphs(tf.as_dtype(dtype)), name)
    return graph


_of_q = differentiable(_through_q, with_prior=True)
compiled_expectation = Compiled(expectation)


class SiteBound:
    """
    F of a model, with the data inside, at the parameters' present values. An InvalidArgumentError
    of TensorFlow means that a matrix had no Cholesky factor.
    """

    def __init__(self, model: Model, source: Source, dtype: tf.DType | None = None) -> None:
        """:param dtype: of the large products, None: GPflow's default float."""
        self.hyperparameters = Hyperparameters(model)
        modules, plan = self.hyperparameters.modules, self.hyperparameters.plan
        self._model, self._source, self._share = model, source, shares_shifts(model)
        *gradients, sums = _graphs(dtype or tf.as_dtype(default_float()))
        self._at_once, self._expected, self._of_sums, self._of_q = (
            graph.bind(*modules, plan) for graph in (*gradients, _of_q)
        )
        self._sums = sums.bind(modules[1])

    def value_and_gradient(self, sites: Sites) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """
        :param sites: of all rows.
        :return: F, and its gradient in each of the hyperparameters' variables.
        """
        jitter = jitter_of(self._model)
        if not self._source.one_chunk:
            return self._by_chunks(sites, jitter)
        first = next(iter(self._source.chunks()))
        value, gradient, _ = self._at_once((), first, sites, jitter, self._share)
        return value, list(gradient)

    def _by_chunks(self, sites: Sites, jitter: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """By the chain rule through q, h and P, in three passes."""
        data, share = self._source, self._share
        sums_of, expected, of_sums = self._sums, self._expected, self._of_sums
        sums = sum_over(data, lambda batch, part: sums_of(batch, part, jitter), sites)
        _, q = compiled_gaussian(sums, share)
        value, gradient, slope = sum_over(data, lambda batch: expected(q, batch, jitter))
        others, of_prior, weights = self._of_q(sums, slope, share)
        rest = sum_over(
            data, lambda batch, part: of_sums((), batch, part, jitter, weights)[1], sites
        )
        gradients = zip(gradient, rest, of_prior)
        return value + others, [tf.add_n(parts) for parts in gradients]
