"""Coordinate ascent on all the data, or on new rows only, with a bound that never decreases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood
from sklearn.exceptions import ConvergenceWarning

from ..checks import check_elbo, check_number, check_rate, check_whole
from ..data.passes import sum_over
from ..data.sources import Source
from ..engine.contracts import Model, open_data, shares_shifts
from ..engine.natural import (
    Gaussian,
    Natural,
    compiled_natural_step,
    expected_factor,
    in_shape,
    natural_step,
    scaled_sites,
    without_point,
)
from ..engine.projected_data import ProjectedData, product_dtype
from ..engine.projection import Projected
from ..engine.shared_graph import Compiled, while_loop
from ..engine.statistics import Statistics, accumulate, marginals
from ..notices import warn
from .algorithm import Algorithm
from .outcome import warn_of_new_rows
from .run import Run, Step

#: The largest number of halvings of a step.
_MAX_HALVINGS = 20
#: Growth factor of rho after each step, up to 1. Growth from 1/2 to 1 takes four sweeps. If full
#: steps always overshoot (several classes), faster growth would waste every other pass.
_GROWTH = 1.2
#: Relative rounding error of the bound, for each precision of the products.
_ROUNDING = {tf.float64: 1e-12, tf.float32: 1e-7}


class Ascent(NamedTuple):
    """The state of an ascent, inside or outside a graph."""

    point: Any  #: any object whose `value` is the bound
    rho: tf.Tensor  #: of the next step
    taken: tf.Tensor  #: rho of the latest step, 0 if there was none
    overshoots: tf.Tensor  #: whether steps had to be halved
    little: tf.Tensor  #: whether the latest step gained little
    ended: tf.Tensor  #: whether steps gain too little, or all fail

    @classmethod
    def start(cls, point: Any, rho: float = 1.0) -> Ascent:
        """:return: an ascent before its first step."""
        size = tf.constant(rho, default_float())
        no = tf.constant(False)
        return cls(point, size, 0 * size, no, no, no)

    def step(
        self, move: Callable[[Any, tf.Tensor], Any], tol: Any, dtype: tf.DType = tf.float64
    ) -> Ascent:
        """
        Move by `rho`, which is halved until the bound decreases by no more than rounding.

        :param move: a function from a point and rho to another point.
        :param tol: stop when a step gains at most `tol` * |bound|. After halved steps, a further
            step of half the size must also gain this little, because a step that nearly overshoots
            always gains little.
        :param dtype: the type of the products.
        :return: the ascent after the step.
        """
        here = self.point
        floor = here.value - _ROUNDING[dtype] * abs(here.value)

        def fails(point: Any) -> tf.Tensor:
            return ~(tf.math.is_finite(point.value) & (point.value >= floor))

        _, rho, point = while_loop(
            lambda number, _, point: (number < _MAX_HALVINGS) & fails(point),
            lambda number, rho, _: (number + 1, rho / 2, move(here, rho / 2)),
            (0, 2 * self.rho, here._replace(value=math.nan * here.value)),
        )
        failed = fails(point)
        overshoots = self.overshoots | (rho < self.rho)
        little = point.value - here.value <= tol * abs(point.value)
        following = tf.where(little, rho / 2, tf.minimum(_GROWTH * rho, 1))
        ended = little & (self.little | ~overshoots)
        found = Ascent(point, following, rho, overshoots, little, ended)
        nothing = self._replace(taken=0 * rho, ended=failed)
        return cast(Ascent, tf.cond(failed, lambda: nothing, lambda: found))


#: Number of multiplications per graph call, which cannot be interrupted (about 0.1 s).
_WORK = 10**9


@dataclass(frozen=True)
class CAVI(Algorithm):
    """
    Coordinate ascent variational inference (Wenzel et al. 2017, section 4.1) for q, at fixed
    hyperparameters. One sweep is a natural-gradient step on all the data, of size rho = 1, halved
    until the ELBO does not decrease. Each sweep is one pass over the data in chunks: memory does
    not grow with N, apart from a fixed cache. If the likelihood depends only on differences between
    latent functions (`shift_invariant`), and these share features, each sweep ends by centering
    their means, because natural-gradient steps alone do so slowly.

    With at least 2e5 feature entries (rows * latent functions * inducing points), large products
    are in single precision, unless this overflows or `tol` is below 1e-6. Sums over chunks, sites
    and factorizations are always in double precision. Rounding errors are a hundredth of the errors
    from the default `tol`: below 1e-3 standard deviations in the means, and 1e-8 of the ELBO.

    :ivar max_steps: maximum number of sweeps.
    :ivar tol: stop when a sweep raises the ELBO by less than `tol` * |ELBO|. After halved steps, a
        further step of half the size must also gain this little. Augmented bounds need many small
        steps: moments of f may be off by 1 % by default; with `tol` = 1e-9, four digits are right.
        `CrammerSinger` with a kernel for each class needs still more, since the common part of all
        f converges slowly: by default, f was off by .2, and probabilities by .006.
    :ivar learning_rate: first rho to try, in (0, 1].
    """

    max_steps: int = 200
    tol: float = 1e-5
    learning_rate: float = 1.0

    def __post_init__(self) -> None:
        check_whole(1, max_steps=self.max_steps)
        check_number(0, tol=self.tol)
        check_rate(self.learning_rate)

    def _begin(self, model: Model, source: Source) -> Run[Any, Any]:
        return Sweeps(self, model, ProjectedData(model, source))


class Point(NamedTuple):
    """q, its ELBO, and the sums of its sites."""

    natural: Natural
    value: tf.Tensor  #: []
    sums: Natural


class SweepState(NamedTuple):
    """The state of `CAVI`."""

    ascent: Ascent | None = None  #: ascent of a `Point`; None before the first pass
    overflows: int = 0  #: whether single precision overflows
    steps: int = 0
    known: tuple[Natural, ...] = ()  #: another Gaussian factor of the posterior, if any


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
    share: tf.Tensor,
    known: tuple[Natural, ...],
    tol: tf.Tensor,
    most: tf.Tensor,
    rows: Projected,
) -> tuple[Ascent, tf.Tensor]:
    """:return: the ascent after at most `most` sweeps, and their ELBO and rho, [steps, 2]."""
    phi = rows.features.phi

    def look(q: Gaussian) -> Statistics:
        return accumulate(likelihood, rows, marginals(phi, q))

    move = partial(_move, natural_step, look, share, known)

    def sweep(number: tf.Tensor, ascent: Ascent, record: tf.TensorArray) -> Any:
        ascent = ascent.step(move, tol, phi.dtype)
        return number + 1, ascent, record.write(number, (ascent.point.value, ascent.taken))

    record = tf.TensorArray(tol.dtype, 0, dynamic_size=True, element_shape=[2])
    _, ascent, record = tf.while_loop(
        lambda number, ascent, _: (number < most) & ~ascent.ended, sweep, (0, ascent, record)
    )
    return ascent, record.stack()


def _move(
    step: Callable[..., tuple[Natural, Gaussian]],
    look: Callable[[Gaussian], Statistics],
    share: tf.Tensor,
    known: tuple[Natural, ...],
    start: Point,
    rho: tf.Tensor,
) -> Point:
    """:return: the point after a step rho from `start`; `look` is a pass over the data."""
    natural, q = step(start.natural, start.sums, rho, share)
    sums, expectation = look(q)
    for factor in known:
        sums = Natural(sums.h + factor.h, sums.P + factor.P)
        expectation += expected_factor(factor, q)
    return Point(natural, expectation - q.kl, in_shape(sums, natural))


class Sweeps(Run[SweepState, Step]):
    """Sweeps of `CAVI` in progress."""

    by_sites = True

    state: SweepState

    def __init__(
        self, options: CAVI, model: Model, data: ProjectedData, known: tuple[Natural, ...] = ()
    ) -> None:
        """:param known: see `SweepState`."""
        super().__init__(options, model)
        self._data = data
        self._natural = model.natural()
        num_latents, num_inducing = model.q_shape
        single = product_dtype(data.num_rows * num_latents * num_inducing, options.tol)
        self._dtypes = list(dict.fromkeys((single, tf.as_dtype(default_float()))))
        self._rows, self._accumulate = data.summed(model.likelihood)
        self._climb = compiled_sweeps.bind(model.likelihood)
        # Centering is invalid with `known`, which acts on each latent function separately.
        self._share = tf.zeros([], default_float()) if known else shares_shifts(model)
        work = num_latents * num_inducing**2 * (data.num_rows + num_inducing)
        self._together = max(1, _WORK // work)
        self.state = SweepState(known=known)

    def steps(self) -> Iterator[Step]:
        """:return: the sweeps from `state` on, in double precision if `float32` overflows."""
        for number in range(self.state.overflows, len(self._dtypes)):
            self._data.dtype = self._dtypes[number]
            if self.state.ascent is None or number > self.state.overflows:
                self.state = self.state._replace(ascent=self._start(), overflows=number)
            yield from self._sweeps()
            if self.state.steps:
                break
        self.converged = self.state.steps > 0
        if not self.converged:
            check_elbo(cast(Ascent, self.state.ascent).point.value, "at the start")
            warn(
                "no step was found that raises the bound: q is unchanged, and the fit has not "
                "converged; try a smaller learning_rate or another bound",
                ConvergenceWarning,
            )

    def _start(self) -> Ascent:
        """:return: the ascent from the model's q."""
        # Take a step of size 0 from a point with bound -infinity.
        nowhere = Point(self._natural, tf.constant(-math.inf, default_float()), self._natural)
        ascent, _ = self._some(Ascent.start(nowhere, 0.0), 1)
        point = ascent.point
        if ascent.ended or not np.isfinite(point.sums.h).all():
            point = point._replace(value=math.nan * point.value)
        return Ascent.start(point, self._options.learning_rate)

    def _sweeps(self) -> Iterator[Step]:
        """:return: sweeps until a sweep gains little."""
        ascent = cast(Ascent, self.state.ascent)
        steps = self.state.steps
        while math.isfinite(ascent.point.value) and not ascent.ended:
            most = min(self._together, self.max_steps - steps) if self.unseen else 1
            ascent, record = self._some(ascent, most)
            taken = [(value, rho) for value, rho in record.numpy().tolist() if rho]
            if not taken:
                break
            self.state = self.state._replace(ascent=ascent, steps=steps + len(taken))
            for value, rho in taken:
                steps += 1
                self.converged = steps == self.state.steps and bool(ascent.ended)
                yield Step(steps, value, rho)

    def _some(self, ascent: Ascent, most: int) -> tuple[Ascent, tf.Tensor]:
        """
        :param most: the largest number of sweeps per call if all rows are in memory, else 1.
        :return: the ascent and the record of `compiled_sweeps`.
        """
        if self._rows.one_chunk:
            tol = tf.constant(self._options.tol, default_float())
            climb = partial(self._climb, ascent, self._share, self.state.known, tol, most)
            return cast(tuple[Ascent, tf.Tensor], sum_over(self._rows, climb))

        def look(q: Gaussian) -> Any:
            return sum_over(self._rows, partial(self._accumulate, q))

        move = partial(_move, compiled_natural_step, look, self._share, self.state.known)
        ascent = ascent.step(move, self._options.tol, self._data.dtype)
        return ascent, tf.stack([[ascent.point.value, ascent.taken]])

    def resume(self, state: SweepState) -> None:
        """See `Run`; also rereads rows without indices, because only a pass finds changed rows."""
        super().resume(state)
        if not self._data.indexed:
            self._start()

    def restore(self) -> None:
        if self.state.ascent is not None and self.state.steps:
            self._model.assign_natural(self.state.ascent.point.natural)


@dataclass(frozen=True)
class Streaming(CAVI):
    r"""
    Streaming variational Bayes (Broderick et al. 2013) for q, at fixed hyperparameters. The model's
    q represents the earlier rows, which are not read again:

        q_new(u) ~ p(u) (q_old(u) / p(u))^forget  prod_n p(y_n | f_n),

    where n runs over the new rows. Sweeps of `CAVI` compute q_new. In natural parameters, the
    earlier rows are a sum of frozen sites. If sites do not depend on q, the result equals a fit to
    all rows; else it differs as much as frozen sites differ from current sites. Every new row
    counts once, whatever the model's `num_data` is.

    To place inducing points among the new rows, call `gpflow_bsvm.inducing_points.exchange` first.

    :ivar forget: in [0, 1], the weight of earlier rows. With 1, they count like new rows. With 0.9,
        for data that drift, rows from k calls ago have weight .9^k.

    Options and errors are as in `CAVI`, except that new rows may lack a class, and q may not be a
    point. `forget` = 0 gives `CAVI` for a model without `num_data`.
    """

    takes_q = True
    weighs = False

    forget: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(0, forget=self.forget)
        if self.forget > 1:
            raise ValueError(f"forget must be in [0, 1], got {self.forget}")

    def _open(self, model: Model, data: Any, sample_weight: Any) -> Source:
        return open_data(model, data, sample_weight, part=True)

    def _begin(self, model: Model, source: Source) -> Run[Any, Any]:
        natural = model.natural()
        if source.indexed:
            warn_of_new_rows(model, source)
        if self.forget and without_point(natural) is not natural:
            raise ValueError(
                "q has no variance, as after ECM, so later rows cannot move it: fit the earlier "
                "rows with CAVI, or set forget=0"
            )
        # The earlier rows' part of q, without the prior N(0, I), reduced by `forget`.
        known = scaled_sites(natural, 0.0 if _is_as_constructed(model, natural) else self.forget)
        parts = (known,) if np.any(known.h) or np.any(known.P) else ()
        return Sweeps(self, model, ProjectedData(model, source), parts)


def _is_as_constructed(model: Model, natural: Natural) -> bool:
    """:return: True if q(u) is still GPflow's initial N(0, I), neither prior nor fitted."""
    if np.any(natural.h):
        return False
    Lz = model.prior_factor()
    P = tf.matmul(Lz, Lz, transpose_a=True)  # of s = Lz^-1 u; its rounding errors differ
    return bool(np.allclose(natural.P, P, atol=0.01 * np.max(P)))
