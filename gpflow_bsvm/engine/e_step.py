"""Steps of q, of rho = 1 where that is safe, else smaller; and steps of the sites themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import tensorflow as tf
from gpflow.config import default_float

from ..data.passes import combine, map_over, sum_over, total
from ..data.sources import Source
from ..likelihoods.hooks import Sites
from .contracts import Model, shares_shifts
from .natural import Natural, compiled_gaussian, compiled_solve
from .projected_data import ProjectedData
from .statistics import Local, compiled_localise, compiled_sum_sites

#: A step is halved at most this often.
_MAX_HALVINGS = 20
#: After each step rho grows by this much, up to 1. Where a full step overshoots for good, as with
#: several classes, faster growth wastes every other pass; from 1/2 it takes four sweeps.
_GROWTH = 1.2
#: Relative rounding of the bound by the precision of the products.
_ROUNDING = {tf.float64: 1e-12, tf.float32: 1e-7}


class Ascent(NamedTuple):
    """Where an ascent stands, and how it goes on."""

    point: Any  #: has a `value`, the bound there
    rho: Any = 1.0  #: of the next step
    taken: Any = 0.0  #: of the latest, 0 if there was none
    overshoots: Any = False  #: whether a step had to be halved
    little: Any = False  #: whether the latest step gained little
    ended: Any = False  #: whether no step is left that gains more

    def step(
        self, move: Callable[[Any, float], Any], tol: float, dtype: tf.DType = tf.float64
    ) -> Ascent:
        """
        Move by `rho`, halved until the bound does not fall by more than rounding.

        :param move: from a point by a rho to another point.
        :param tol: the ascent has ended when a step gains less than `tol` times the bound; where
            steps overshoot only if half a step gains no more: one that just does not overshoot
            gains little far from the top, too.
        :param dtype: of the products.
        :return: the ascent after it, of numbers; in a graph of tensors.
        """
        here = self.point
        floor = here.value - _ROUNDING[dtype] * abs(here.value)

        def fails(point: Any) -> Any:
            value = point.value
            return (value != value) | (abs(value) == math.inf) | (value < floor)

        def halve(number: Any, rho: Any, _: Any) -> Any:
            return number + 1, rho / 2, move(here, rho / 2)

        start = 0, 2 * self.rho, here._replace(value=math.nan * here.value)
        _, rho, point = _while(lambda n, _, p: (n < _MAX_HALVINGS) & fails(p), halve, start)
        overshoots = self.overshoots | (rho < self.rho)
        little = point.value - here.value <= tol * abs(point.value)
        ended = little & (self.little | (overshoots ^ True))
        larger, one = _GROWTH * rho, 0 * rho + 1
        following = _either(little, rho / 2, _either(larger < one, larger, one))
        found = Ascent(point, following, rho, overshoots, little, ended)
        failed = self._replace(taken=0 * rho, ended=True)
        return cast(Ascent, _either(fails(point), failed, found))

    def in_tensors(self) -> Ascent:
        """:return: the same for a graph."""
        point = self.point._replace(value=tf.constant(self.point.value, default_float()))
        numbers = (tf.constant(number, default_float()) for number in self[1:3])
        return Ascent(point, *numbers, *map(tf.constant, self[3:]))

    def in_numbers(self) -> Ascent:
        """:return: the same out of one."""
        point = self.point._replace(value=float(self.point.value))
        return Ascent(point, *(value.numpy().item() for value in self[1:]))


def _while(goes_on: Callable[..., Any], body: Callable[..., Any], state: Any) -> Any:
    """:return: the last state, as `tf.while_loop`, which outside of a graph makes tensors of it."""
    if not tf.executing_eagerly():
        return tf.while_loop(goes_on, body, state)
    while goes_on(*state):
        state = body(*state)
    return state


def _either(condition: Any, one: Any, other: Any) -> Any:
    """:return: `one` or `other`, structures of numbers; in a graph by selection."""
    if not tf.is_tensor(condition):
        return one if condition else other
    return tf.nest.map_structure(partial(tf.where, condition), one, other)


class SitePoint(NamedTuple):
    """Sites of all rows, and what follows from them."""

    sites: Sites
    value: float  #: the ELBO of their q
    natural: Natural
    fresh: Sites  #: as they are seen from q


class SiteAscent:
    """
    q by damped updates of the sites, at fixed hyperparameters.

    :ivar point: the best so far.
    """

    def __init__(
        self, model: Model, source: Source, sites: Sites | None, dtype: tf.DType | None = None
    ) -> None:
        """
        :param sites: where to start; None: those of the model's q, or none at all if these are
            better.
        :param dtype: of the large products, None: GPflow's default float.
        """
        self._localise = compiled_localise.bind(model.likelihood)
        self._data, self._share = ProjectedData(model, source), shares_shifts(model)
        self._data.dtype = dtype or self._data.dtype
        starts = [] if sites is None else [sites]
        if not starts:
            q = compiled_solve(model.natural())
            there = Local(*map_over(self._data, partial(self._localise, q), stay=True)).sites
            starts = [combine(partial(tf.nest.map_structure, tf.zeros_like), there), there]
        points = map(self._at, starts)
        self.point: SitePoint = max(
            points, key=lambda point: point.value if math.isfinite(point.value) else -math.inf
        )

    def climb(self, sweeps: int) -> float:
        """
        Update the sites, each time by rho = 1 or, where F would fall, by less.

        :return: the last rho, 0 if none was found that does not lower F.
        """
        ascent = Ascent(self.point)
        for _ in range(sweeps):
            ascent = ascent.step(self._move, -math.inf, self._data.dtype)
            self.point = ascent.point
            if ascent.ended:
                break
        return float(ascent.taken)

    def _move(self, start: SitePoint, rho: float) -> SitePoint:
        def mixed(old: Sites, new: Sites) -> Sites:
            return Sites(*((1 - rho) * one + rho * other for one, other in zip(old, new)))

        return self._at(combine(mixed, start.sites, start.fresh))

    def _at(self, sites: Sites) -> SitePoint:
        sums = sum_over(self._data, compiled_sum_sites, sites)
        natural, q = compiled_gaussian(sums, self._share)
        fresh, expectation = map_over(self._data, partial(self._localise, q), stay=True)
        return SitePoint(sites, float(total(expectation) - q.kl), natural, fresh)
