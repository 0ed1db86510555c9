"""Coordinate ascent on all the data, with a step that never lets the bound fall."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

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
from ..engine.natural import Gaussian, Natural, compiled_step, expected_factor, step
from ..engine.projected_data import ProjectedData, num_entries, product_dtype
from ..engine.projection import Projected
from ..engine.shared_graph import Compiled
from ..engine.statistics import Statistics, accumulate, marginals
from .algorithm import Algorithm, Run, Step

#: "mixed" goes on in double precision once the ELBO rises by less than this, relatively.
_SINGLE_TOL = 1e-4

#: Sweeps in one call, which nothing interrupts, are some 0.1 s of work, in multiplications.
_WORK = 10**9

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


class Terms(NamedTuple):
    """What a sweep knows beside rows."""

    share: tf.Tensor  #: [], see `gpflow_bsvm.engine.natural.centre`
    known: tuple[Natural, ...]  #: that of `State`, if any


@Compiled
@check_shapes(
    "ascent.point.natural.h: [L, M]",
    "ascent.point.natural.P: [L, M, M]",
    "rows.features.phi: [G, N, M]",
    "return[1]: [., 2]",
)
def compiled_sweeps(
    likelihood: Likelihood,
    ascent: Ascent,
    terms: Terms,
    tol: tf.Tensor,
    most: tf.Tensor,
    rows: Projected,
) -> tuple[Ascent, tf.Tensor]:
    """:return: the ascent after at most so many sweeps, and their ELBO and rho, [steps, 2]."""

    def move(start: Point, rho: tf.Tensor) -> Point:
        natural, q = step(start.natural, start.sums, rho, terms.share)
        seen = accumulate(likelihood, rows, marginals(rows.features.phi, q.R, q.c))
        point = _point(natural, q, seen, terms.known)
        # A loop wants the shapes that it began with.
        sums = (tf.ensure_shape(new, old.shape) for new, old in zip(point.sums, natural))
        return point._replace(sums=Natural(*sums))

    def sweep(number: tf.Tensor, ascent: Ascent, record: tf.TensorArray) -> Any:
        ascent = ascent.step(move, tol, rows.features.phi.dtype)
        return number + 1, ascent, record.write(number, (ascent.point.value, ascent.taken))

    def goes_on(number: tf.Tensor, ascent: Ascent, _: Any) -> tf.Tensor:
        return (number < most) & tf.logical_not(ascent.ended)

    record = tf.TensorArray(tol.dtype, 0, dynamic_size=True, element_shape=[2])
    _, ascent, record = tf.while_loop(goes_on, sweep, (0, ascent, record))
    return ascent, record.stack()


def _point(natural: Natural, q: Gaussian, seen: Statistics, known: tuple[Natural, ...]) -> Point:
    sums, expectation = seen
    for factor in known:
        sums = Natural(sums.h + factor.h, sums.P + factor.P)
        expectation += expected_factor(factor, q)
    return Point(natural, expectation - q.kl, sums)


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
        self._climb = compiled_sweeps.bind(model.likelihood)
        # A factor of each latent function's own costs where all of them shift together.
        self._share = shares_shifts(model) if known is None else tf.zeros([], default_float())
        num_latents, num_features = model.num_features
        work = num_latents * num_features**2 * (data.num_rows + num_features)
        self._together = max(1, _WORK // work)
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
        # As by a step of size 0 from where the bound is lower than anywhere.
        here = before.point._replace(sums=before.point.natural, value=-math.inf)
        ascent, _ = self._some(Ascent(here, rho=0.0), Phase(self._data.dtype, 0.0), 1)
        point = ascent.point
        if ascent.ended or not np.isfinite(point.sums.h).all():
            point = point._replace(value=math.nan)
        return Ascent(point, self._options.learning_rate, overshoots=before.overshoots)

    def _sweeps(self, phase: Phase) -> Iterator[Step]:
        """:return: the sweeps until one gains little."""
        ascent = cast(Ascent, self.state.ascent)
        while math.isfinite(ascent.point.value) and not ascent.ended:
            steps = self.state.steps
            ascent, taken = self._some(
                ascent, phase, min(self._together, self.max_steps - steps) if self.unseen else 1
            )
            if not taken:
                break
            self.state = self.state._replace(ascent=ascent, steps=steps + len(taken))
            for number, (value, rho) in enumerate(taken, 1):
                self.converged = number == len(taken) and ascent.ended and phase.enough
                yield Step(steps + number, value, rho)

    def _some(
        self, ascent: Ascent, phase: Phase, most: int
    ) -> tuple[Ascent, list[tuple[float, float]]]:
        """
        :param most: sweeps in one call, where all rows are in memory; else this is one.
        :return: the ascent after them, and the ELBO and rho of those that moved q.
        """
        if not self._rows.one_chunk:
            ascent = ascent.step(self._move, phase.tol, phase.dtype)
            return ascent, [(ascent.point.value, ascent.taken)] if ascent.taken else []
        how = ascent.in_tensors(), self._terms(), tf.constant(phase.tol, default_float())
        ascent, record = sum_over(self._rows, partial(self._climb, *how, tf.constant(most)))
        return ascent.in_numbers(), [(value, rho) for value, rho in record.numpy().tolist() if rho]

    def _move(self, start: Point, rho: float) -> Point:
        """One pass over the data: the point at rho, its ELBO and the sums seen from there."""
        share, known = self._terms()
        rate = tf.constant(rho, start.natural.h.dtype)
        natural, q = compiled_step(start.natural, start.sums, rate, share)
        seen = sum_over(self._rows, partial(self._accumulate, q))
        point = _point(natural, q, seen, known)
        return point._replace(value=float(point.value))

    def _terms(self) -> Terms:
        return Terms(self._share, () if self.state.known is None else (self.state.known,))

    def look_again(self) -> None:
        """See `Run`."""
        if not self._data.indexed:  # nothing but a pass tells of rows that came since
            self._start()

    def restore(self) -> None:
        """See `Run`."""
        if self.state.ascent is not None and self.state.steps:
            self._model.assign_natural(self.state.ascent.point.natural)
