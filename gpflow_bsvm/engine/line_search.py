"""One ascent for all: steps of rho = 1 where that is safe, else of as much as is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

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
    rho: float = 1.0  #: of the next step
    taken: float = 0.0  #: of the latest, 0 if there was none
    overshoots: bool = False  #: whether a step had to be halved
    little: bool = False  #: whether the latest step gained little
    ended: bool = False  #: whether no step is left that gains more

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
        """
        rho, point = backtrack(move, self.point, self.rho, dtype)
        if point is None:
            return self._replace(taken=0.0, ended=True)
        overshoots = self.overshoots or rho < self.rho
        little = point.value - self.point.value <= tol * abs(point.value)
        ended = little and (self.little or not overshoots)
        following = rho / 2 if little else min(1.0, _GROWTH * rho)
        return Ascent(point, following, rho, overshoots, little, ended)


def backtrack(
    move: Callable[[Any, float], Any], start: Any, rho: float, dtype: tf.DType
) -> tuple[float, Any]:
    """:return: the rho that was taken and the point, or 0 and None if none was found."""
    floor = start.value - _ROUNDING[dtype] * abs(start.value)
    for _ in range(_MAX_HALVINGS):
        point = move(start, rho)
        if math.isfinite(point.value) and point.value >= floor:
            return rho, point
        rho /= 2
    return 0.0, None
