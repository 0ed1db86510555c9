r"""Variational EM with fixed sites: updates of q and of the hyperparameters in turn.

With a fixed site (w_n, r_n) for each datum and latent function, every value theta of the
hyperparameters defines a q:

    q(s) = N(P^-1 h, P^-1),   P(theta) = I + Phi^T diag(w) Phi,   h(theta) = Phi^T r,
    F(theta) = sum_n E_q log p(y_n | f_n) - KL(q || N(0, I)) + log prior(theta).

F is a lower bound at every theta (the dual view of Adam et al. 2021, t-SVGP, with a site for every
datum). F needs no refits of q: it is a single smooth function, suitable for quasi-Newton methods.
Gradients are computed chunk by chunk: memory does not grow with N.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..checks import check_number, check_whole
from ..data.batch import Batch
from ..data.passes import map_over, sum_over
from ..data.sources import Source
from ..engine.contracts import Model, jitter_of, shares_shifts
from ..engine.hyperparameters import Hyperparameters, value_and_gradient
from ..engine.natural import Gaussian, Natural, compiled_gaussian, compiled_solve, gaussian
from ..engine.projected_data import ProjectedData, product_dtype
from ..engine.projection import Floats, Prior, project_batch
from ..engine.quasi_newton import maximise
from ..engine.shared_graph import Compiled
from ..engine.statistics import (
    compiled_localise,
    compiled_sum_sites,
    expectations,
    marginals,
    sum_sites,
)
from ..likelihoods.base import Sites
from .algorithm import Algorithm, settled
from .cavi import CAVI, Ascent
from .run import Run, Step

#: An M step ends when an iteration gains less than this fraction of the last E step's gain.
_LEAST_GAIN = 0.1


@dataclass(frozen=True)
class VEM(Algorithm):
    """
    Variational EM with sites fixed in the M step (`gpflow_bsvm.inference.vem`): learns the
    trainable parameters of kernel, inducing variable, mean function and likelihood together with q,
    without a learning rate. A step is a round of

        E: a few damped updates of the sites at fixed hyperparameters, like sweeps of `CAVI`; M: a
        quasi-Newton method (L-BFGS, then BFGS with the curvature of earlier rounds) maximizes the
        bound F over the hyperparameters, with q determined by the fixed sites, until an iteration
        gains less than a tenth of the last E step's gain.

    F is the ELBO plus the log prior density of the hyperparameters; it decreases only by rounding.
    Records contain F as `elbo`, and the hyperparameters. With at least 2e5 feature entries (rows *
    latent functions * inducing points), products are in single precision, unless `tol` is below
    1e-6. GPflow's priors and `trainable` flags are respected; if no hyperparameter is trainable,
    `CAVI()` runs. Non-finite hyperparameters or prior densities raise an error.

    :ivar max_steps: maximum number of rounds.
    :ivar sweeps: number of updates of the sites per round.
    :ivar iterations: maximum number of iterations per M step.
    :ivar tol: stop when two successive rounds together raise F by less than `tol` times |F|.
    """

    learns = True

    max_steps: int = 50
    sweeps: int = 3
    iterations: int = 8
    tol: float = 1e-4

    def __post_init__(self) -> None:
        check_whole(1, max_steps=self.max_steps, sweeps=self.sweeps, iterations=self.iterations)
        check_number(0, tol=self.tol)

    def _begin(self, model: Model, source: Source) -> Run[Any, Any]:
        if not model.hyperparameters():
            return CAVI()._begin(model, source)
        if not source.ordered:
            raise ValueError(
                "VEM keeps a site for every row, and needs rows in a fixed order: give arrays (X, "
                "Y), files or a list of blocks (list(dataset) for a tf.data.Dataset), or use ML2"
            )
        return _Rounds(self, model, source)


class RoundState(NamedTuple):
    """The state of `VEM`."""

    values: tuple[AnyNDArray, ...]  #: unconstrained hyperparameters
    sites: Sites | None = None
    natural: Natural | None = None
    gain: float = -math.inf  #: gain of the latest E step
    curvature: AnyNDArray | None = None  #: inverse of the Hessian of F
    elbos: tuple[float, ...] = ()  #: of all rounds


class _Rounds(Run[RoundState, Step]):
    by_sites = True

    state: RoundState

    def __init__(self, options: VEM, model: Model, source: Source) -> None:
        super().__init__(options, model)
        self._source = source
        self._dtype = product_dtype(source.num_rows * math.prod(model.q_shape), options.tol)
        self._bound = SiteBound(model, source, self._dtype)
        self._hyper = self._bound.hyperparameters
        self._hyper.check_start()
        self.state = RoundState(self._hyper.state())

    def advance(self) -> Step:
        state = self.state
        options = self._options
        curvature = None
        if state.sites is not None:
            here = partial(self._bound.value_and_gradient, state.sites)
            least = _LEAST_GAIN * state.gain
            noise = abs(state.elbos[-1]) * float(np.finfo(self._dtype.as_numpy_dtype).eps)
            curvature = maximise(
                here, self._hyper.variables, options.iterations, state.curvature, least, noise
            )
            if all(map(np.array_equal, state.values, self._hyper.state())):
                self.flat = not any(map(np.any, here()[1]))
        ascent = SiteAscent(self._model, self._source, state.sites, self._dtype)
        before = math.inf if state.sites is None else float(ascent.point.value)
        rho = ascent.climb(options.sweeps)
        sites, _, bound, natural = ascent.point
        value = float(bound)
        elbos = (*state.elbos, value + float(self._hyper.log_prior_density()))
        self.state = RoundState(
            self._hyper.state(), sites, natural, value - before, curvature, elbos
        )
        self.converged = settled(elbos, options.tol)
        return Step(len(elbos), elbos[-1], rho, self._hyper.values())

    def restore(self) -> None:
        self._hyper.assign(self.state.values)
        if self.state.natural is not None:
            self._model.assign_natural(self.state.natural)


class SitePoint(NamedTuple):
    """Sites of all rows, and quantities computed from them."""

    sites: Sites
    fresh: Sites  #: sites at the marginals of this q
    value: Any = -math.inf  #: [], the ELBO of the q of `sites`, once known
    natural: Natural | None = None


class SiteAscent:
    """
    Damped updates of the sites, and hence of q, at fixed hyperparameters.

    :ivar point: the best point so far.
    """

    def __init__(
        self, model: Model, source: Source, sites: Sites | None, dtype: tf.DType | None = None
    ) -> None:
        """
        :param sites: initial sites; if None, the better of zeros and the sites of the model's q.
        :param dtype: precision of the large products; if None, GPflow's default float.
        """
        self._localise = compiled_localise.bind(model.likelihood)
        self._data = ProjectedData(model, source)
        self._share = shares_shifts(model)
        self._data.dtype = dtype or self._data.dtype
        starts = [] if sites is None else [sites]
        if not starts:
            q = compiled_solve(model.natural())
            there, _ = map_over(self._data, partial(self._localise, q))
            starts = [tf.nest.map_structure(tf.zeros_like, there), there]
        points = [self._move(SitePoint(one, one), 1.0) for one in starts]
        self.point: SitePoint = max(
            points, key=lambda point: point.value if math.isfinite(point.value) else -math.inf
        )

    def climb(self, sweeps: int) -> float:
        """
        Update the sites repeatedly with rho = 1, or smaller if F would decrease.

        :return: the last rho; 0 if every step lowers F.
        """
        ascent = Ascent.start(self.point)
        for _ in range(sweeps):
            ascent = ascent.step(self._move, -math.inf, self._data.dtype)
            self.point = ascent.point
            if ascent.ended:
                break
        return float(ascent.taken)

    def _move(self, start: SitePoint, rho: tf.Tensor) -> SitePoint:
        """:return: the point after moving the sites by this fraction toward their new values."""
        old = start.sites
        new = start.fresh
        sites = Sites((1 - rho) * old.w + rho * new.w, (1 - rho) * old.r + rho * new.r)
        sums = sum_over(self._data, compiled_sum_sites, sites)
        natural, q = compiled_gaussian(sums, self._share)
        fresh, expectation = map_over(self._data, partial(self._localise, q))
        return SitePoint(sites, fresh, tf.reduce_sum(expectation) - q.kl, natural)


@check_shapes("batch.X: [N, D]", "sites.w: [N, L]", "share: []", "return: []")
def site_bound(
    likelihood: Likelihood, prior: Prior, batch: Batch, sites: Sites, how: Floats, share: tf.Tensor
) -> tf.Tensor:
    """:return: F of one chunk, without the hyperparameters' log prior; for `share` see `centre`."""
    rows = project_batch(prior, batch, how)
    q = gaussian(sum_sites(rows, sites), share)[1]
    f = marginals(rows.features.phi, q)
    return tf.reduce_sum(expectations(likelihood, rows, f)) - q.kl


@check_shapes("q.c: [L, M]", "batch.X: [N, D]", "return: []")
def expectation(
    likelihood: Likelihood, prior: Prior, q: Gaussian, how: Floats, batch: Batch
) -> tf.Tensor:
    """:return: sum of E_q log p(y_n | f_n) under q(s)."""
    rows = project_batch(prior, batch, how)
    f = marginals(rows.features.phi, q)
    return tf.reduce_sum(expectations(likelihood, rows, f))


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
    """:return: -KL, with F's gradient in h and P: the gradient of -KL, plus `slope` through q."""
    _, q = gaussian(sums, share)
    R, c = (part - tf.stop_gradient(part) for part in (q.R, q.c))  # zeros that only add gradients
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
        """:param dtype: precision of the large products; if None, GPflow's default float."""
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
