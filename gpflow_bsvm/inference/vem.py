"""Variational EM with fixed sites: updates of q and of the hyperparameters in turn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from gpflow.base import AnyNDArray

from ..checks import check_number, check_whole
from ..data.sources import Source
from ..engine.contracts import Model
from ..engine.e_step import SiteAscent
from ..engine.m_step import SiteBound
from ..engine.natural import Natural
from ..engine.projected_data import num_entries, product_dtype
from ..engine.quasi_newton import maximise
from ..likelihoods.hooks import Sites
from .algorithm import Algorithm, settled
from .cavi import CAVI
from .run import Run, Step

#: An M step ends when an iteration gains less than this fraction of the last E step's gain.
_LEAST_GAIN = 0.1


@dataclass(frozen=True)
class VEM(Algorithm):
    """
    Variational EM with fixed sites (`gpflow_bsvm.engine.m_step`): learns the trainable
    parameters of kernel, inducing variable, mean function and likelihood together with q, without
    a learning rate. A step is a round of

        E: some damped updates of the sites at fixed hyperparameters, like sweeps of `CAVI`; M:
        iterations of a quasi-Newton method (L-BFGS, then BFGS with the curvature of earlier rounds)
        on the bound F as a function of the hyperparameters, with q determined by the fixed sites,
        until an iteration gains less than a tenth of the last E step's gain.

    Neither step decreases F, the ELBO plus the log prior density of the hyperparameters, beyond
    rounding. Records contain F as `elbo`, and the hyperparameters. From 2e5 feature entries (N
    times L M) on, products are in single precision, unless `tol` is below 1e-6. GPflow's priors and
    `trainable` flags are honoured; if nothing is trainable, this is `CAVI`. Non-finite
    hyperparameters or prior densities raise an error.

    :ivar max_steps: maximum number of rounds.
    :ivar sweeps: number of updates of the sites per round.
    :ivar iterations: maximum number of iterations of an M step.
    :ivar tol: stop when two successive rounds together raise F by less than `tol` times its
        absolute value.
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
                "VEM keeps a site of every row, and needs rows in a fixed order: give arrays (X, "
                "Y), files or a list of blocks, such as list(dataset) of a tf.data.Dataset, or "
                "use ML2"
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
        self._options = options
        self._model = model
        self._source = source
        self.max_steps = options.max_steps
        self._dtype = product_dtype(num_entries(model, source), options.tol)
        self._bound = SiteBound(model, source, self._dtype)
        self._hyper = self._bound.hyperparameters
        self._hyper.check_start()
        self.state = RoundState(self._hyper.state())

    def advance(self) -> Step:
        """Run a round."""
        state = self.state
        options = self._options
        curvature = None
        if state.sites is not None:
            here = partial(self._bound.value_and_gradient, state.sites)
            least = _LEAST_GAIN * state.gain
            curvature = maximise(
                here, self._hyper.variables, options.iterations, state.curvature, least
            )
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
