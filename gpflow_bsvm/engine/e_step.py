"""Steps of q with the largest safe rho up to 1, and steps of the sites themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import tensorflow as tf
from gpflow.config import default_float

from ..data.passes import map_over, sum_over
from ..data.sources import Source
from ..likelihoods.hooks import Sites
from .contracts import Model, shares_shifts
from .natural import Natural, compiled_gaussian, compiled_solve
from .projected_data import ProjectedData
from .shared_graph import while_loop
from .statistics import compiled_localise, compiled_sum_sites

#: The largest number of halvings of a step.
_MAX_HALVINGS = 20
#: Growth factor of rho after each step, up to 1. Growth from 1/2 to 1 takes four sweeps. If full
#: steps always overshoot (several classes), faster growth would waste every other pass.
_GROWTH = 1.2
#: Relative rounding error of the bound, for each precision of the products.
_ROUNDING = {tf.float64: 1e-12, tf.float32: 1e-7}


class Ascent(NamedTuple):
    """The state of an ascent, inside or outside a graph."""

    point: Any  #: has the bound as `value`
    rho: tf.Tensor  #: of the next step
    taken: tf.Tensor  #: rho of the latest step, 0 if there was none
    overshoots: tf.Tensor  #: whether steps had to be halved
    little: tf.Tensor  #: whether the latest step gained little
    ended: tf.Tensor  #: whether no step gains more

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
        Move by `rho`, halved until the bound does not decrease beyond rounding.

        :param move: a function from a point and rho to another point.
        :param tol: stop when a step gains at most `tol` * |bound|. If steps have been halved, the
            next step, half as large, must also gain this little, because a step that nearly
            overshoots always gains little.
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


class SitePoint(NamedTuple):
    """Sites of all rows, and quantities computed from them."""

    sites: Sites
    fresh: Sites  #: sites at the marginals of q
    value: Any = -math.inf  #: [], the ELBO of their q, once known
    natural: Natural | None = None


class SiteAscent:
    """
    q by damped updates of the sites, at fixed hyperparameters.

    :ivar point: the best point so far.
    """

    def __init__(
        self, model: Model, source: Source, sites: Sites | None, dtype: tf.DType | None = None
    ) -> None:
        """
        :param sites: initial sites; None: the better of the sites of the model's q and no sites.
        :param dtype: precision of the large products; None: GPflow's default float.
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
        """:return: the point after moving the sites by this fraction towards their fresh values."""
        old = start.sites
        new = start.fresh
        sites = Sites((1 - rho) * old.w + rho * new.w, (1 - rho) * old.r + rho * new.r)
        sums = sum_over(self._data, compiled_sum_sites, sites)
        natural, q = compiled_gaussian(sums, self._share)
        fresh, expectation = map_over(self._data, partial(self._localise, q))
        return SitePoint(sites, fresh, tf.reduce_sum(expectation) - q.kl, natural)
