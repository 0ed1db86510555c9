"""Coordinate ascent on all the data, with a step that never lets the bound fall."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..checks import check_choice, check_elbo, check_number, check_rate, check_whole
from ..data.passes import sum_over
from ..data.sources import Source
from ..engine.contracts import Model, shares_shifts
from ..engine.e_step import Ascent
from ..engine.natural import Gaussian, Natural, compiled_expected_factor, compiled_step, step
from ..engine.projected_data import ProjectedData, num_entries, product_dtype
from ..engine.projection import Projected
from ..engine.shared_graph import Compiled
from ..engine.statistics import Statistics, accumulate, marginals
from .algorithm import Algorithm, Run, Step

#: "mixed" goes on in double precision once the ELBO rises by less than this, relatively.
_SINGLE_TOL = 1e-4

_NO_STEP = (
    "no step was found that raises the bound: q is as it was, and nothing has converged; a smaller "
    "learning_rate or another bound may help"
)


@dataclass(frozen=True)
class CAVI(Algorithm):
    """
    Coordinate ascent variational inference (Wenzel et al. 2017, section 4.1) for q, at fixed
    hyperparameters: one sweep is a natural-gradient step of size rho on all the data, rho = 1
    unless the ELBO would fall, else halved until it does not. Each sweep costs one pass over the
    data, in chunks, so that memory does not grow with N beyond a fixed cache. Where the likelihood
    is a function of differences between latent functions (`shift_invariant`), a sweep ends by
    taking out of their means what they have in common, for which steps alone need many sweeps.

    :ivar max_steps: most sweeps.
    :ivar tol: stop when the ELBO rises by less than `tol` times its absolute value, if a step had
        to be halved also with half the step.
    :ivar learning_rate: first rho to try, in (0, 1].
    :ivar matmul_precision: of the large products; sums over chunks, sites and factorisations are
        always in GPflow's default float. "float64", "float32" or "mixed": float32 far from the
        fixed point, where only the direction matters, float64 for the last sweeps, so that the
        result is that of float64. None: from 2e5 feature entries (N times L M) on "float32", unless
        it overflows or `tol` is below 1e-6 ("mixed" then), else the default float. What single
        precision changes is a hundredth of what the default `tol` leaves: means by less than 1e-3
        standard deviations, the ELBO by 1e-8 of itself.
    """

    max_steps: int = 200
    tol: float = 1e-5
    learning_rate: float = 1.0
    matmul_precision: str | None = None

    def __post_init__(self) -> None:
        check_whole(1, max_steps=self.max_steps)
        check_number(0, tol=self.tol)
        check_rate(learning_rate=self.learning_rate)
        known = (None, "float64", "float32", "mixed")
        check_choice(known, matmul_precision=self.matmul_precision)

    def _begin(self, model: Model, source: Source) -> Run:
        return Sweeps(self, model, ProjectedData(model, source))

    def phases(self, entries: int) -> list[Phase]:
        """:return: the phases of the sweeps, with so many entries of features."""
        exact, precision = tf.as_dtype(default_float()), self.matmul_precision
        if precision is None:
            if product_dtype(entries, self.tol) != exact:
                return [Phase(tf.float32, self.tol), Phase(exact, self.tol)]
            precision = exact.name if product_dtype(entries, math.inf) == exact else "mixed"
        if precision == "mixed":
            rough = Phase(tf.float32, max(self.tol, _SINGLE_TOL), enough=False)
            return [rough, Phase(exact, self.tol)]
        return [Phase(tf.as_dtype(precision), self.tol)]


class Phase(NamedTuple):
    """Some sweeps of a fit."""

    dtype: tf.DType  #: of the large products
    tol: float
    enough: bool = True  #: whether it ends the fit, if the bound is finite


class Point(NamedTuple):
    """q, its ELBO, and the sums of the sites as they are seen from there."""

    natural: Natural
    value: float
    sums: Natural


class State(NamedTuple):
    """Where `CAVI` stands."""

    ascent: Ascent | None = None  #: of a `Point`; None before the first pass
    phase: int = 0
    steps: int = 0
    known: Natural | None = None  #: a Gaussian factor of the target besides prior and data


@Compiled
@check_shapes("natural.h: [L, M]", "natural.P: [L, M, M]", "rows.features.phi: [G, N, M]")
def compiled_sweep(
    likelihood: Likelihood,
    natural: Natural,
    sums: Natural,
    rho: tf.Tensor,
    share: tf.Tensor,
    rows: Projected,
) -> tuple[Natural, Gaussian, Statistics]:
    """`step`, and the statistics of `rows` where that arrives."""
    natural, q = step(natural, sums, rho, share)
    return natural, q, accumulate(likelihood, rows, marginals(rows.features.phi, q.R, q.c))


class Sweeps(Run):
    """Sweeps of `CAVI` under way."""

    by_sites = True

    state: State

    def __init__(
        self, options: CAVI, model: Model, data: ProjectedData, known: Natural | None = None
    ) -> None:
        """:param known: see `State`."""
        self._options, self._model, self._data = options, model, data
        self._natural = model.natural()
        self.max_steps = options.max_steps
        self._phases = options.phases(num_entries(model, data))
        self._rows, self._accumulate = data.summed(model.likelihood)
        self._sweep = compiled_sweep.bind(model.likelihood)
        # A factor of each latent function's own costs where all of them shift together.
        self._share = shares_shifts(model) if known is None else tf.zeros([], default_float())
        self.state = State(known=known)

    def steps(self) -> Iterator[Step]:
        """:return: the sweeps from `state` on, phase after phase."""
        for number, phase in list(enumerate(self._phases))[self.state.phase :]:
            self._data.dtype = phase.dtype
            if self.state.ascent is None or number > self.state.phase:
                self.state = self.state._replace(ascent=self._start(), phase=number)
            yield from self._sweeps(phase)
            if phase.enough and self.state.steps:  # none where single precision has overflown
                break
        self.converged = self.state.steps > 0
        if not self.converged:
            check_elbo(cast(Ascent, self.state.ascent).point.value, "at the start")
            warnings.warn(_NO_STEP, stacklevel=6)

    def _start(self) -> Ascent:
        """:return: the ascent from where `state` is, with products in this phase's dtype."""
        before = self.state.ascent or Ascent(Point(self._natural, math.nan, self._natural))
        here = before.point._replace(sums=before.point.natural)
        point = self._move(here, 0.0)
        if not np.isfinite(point.sums.h).all():
            point = point._replace(value=math.nan)
        return Ascent(point, self._options.learning_rate, overshoots=before.overshoots)

    def _sweeps(self, phase: Phase) -> Iterator[Step]:
        """:return: the sweeps until one gains little."""
        ascent = cast(Ascent, self.state.ascent)
        while math.isfinite(ascent.point.value) and not ascent.ended:
            ascent = ascent.step(self._move, phase.tol, phase.dtype)
            if not ascent.taken:
                break
            steps = self.state.steps + 1
            self.state = self.state._replace(ascent=ascent, steps=steps)
            self.converged = ascent.ended and phase.enough
            yield Step(steps, ascent.point.value, ascent.taken)

    def _move(self, start: Point, rho: float) -> Point:
        """One pass over the data: the point at rho, its ELBO and the sums seen from there."""
        rate = tf.constant(rho, start.natural.h.dtype)
        how = start.natural, start.sums, rate, self._share
        if self._rows.one_chunk:  # its graph takes the step too: a call less in each sweep
            natural, q, (sums, expectation) = sum_over(self._rows, partial(self._sweep, *how))
        else:
            natural, q = compiled_step(*how)
            sums, expectation = sum_over(self._rows, partial(self._accumulate, q))
        if self.state.known is not None:
            sums = Natural(*map(tf.add, sums, self.state.known))
            expectation += compiled_expected_factor(self.state.known, q)
        return Point(natural, float(expectation - q.kl), sums)

    def look_again(self) -> None:
        """See `Run`."""
        if not self._data.indexed:  # nothing but a pass tells of rows that came since
            self._start()

    def restore(self) -> None:
        """See `Run`."""
        if self.state.ascent is not None and self.state.steps:
            self._model.assign_natural(self.state.ascent.point.natural)
