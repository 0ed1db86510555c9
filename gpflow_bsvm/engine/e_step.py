"""Coordinate ascent on the sites themselves, one of every datum."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import tensorflow as tf

from ..data.passes import combine, map_over, sum_over, total
from ..data.sources import Source
from ..likelihoods.hooks import Sites
from .contracts import Model, shares_shifts
from .line_search import Ascent
from .natural import Gaussian, Natural, compiled_gaussian, compiled_solve
from .projected_data import ProjectedData
from .statistics import Local, compiled_localise, compiled_sum_sites


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
            there = self._local(compiled_solve(model.natural())).sites
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
        return ascent.taken

    def _move(self, start: SitePoint, rho: float) -> SitePoint:
        return self._at(combine(partial(_mixed, rho), start.sites, start.fresh))

    def _at(self, sites: Sites) -> SitePoint:
        sums = sum_over(self._data, compiled_sum_sites, sites)
        natural, q = compiled_gaussian(sums, self._share)
        fresh, expectation = self._local(q)
        return SitePoint(sites, float(total(expectation) - q.kl), natural, fresh)

    def _local(self, q: Gaussian) -> Local:
        """:return: the sites of all rows under q(s), and the expectations."""
        return Local(*map_over(self._data, partial(self._localise, q), stay=True))


def _mixed(rho: float, old: Sites, new: Sites) -> Sites:
    return Sites(*((1 - rho) * one + rho * other for one, other in zip(old, new)))
