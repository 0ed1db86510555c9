"""Steps that never let a bound fall: rho = 1 where that is safe, else as much as is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

#: A step is halved at most this often.
_MAX_HALVINGS = 20
#: After each step rho grows by this much, up to 1. Where a full step overshoots for good, as with
#: several classes, faster growth wastes every other pass; from 1/2 it takes four sweeps.
_GROWTH = 1.2
#: Relative rounding of the ELBO by the precision of the products.
_ROUNDING = {tf.float64: 1e-12, tf.float32: 1e-7}


def halved(
    move: Callable[[float], Any],
    elbo: float,
    rho: float,
    dtype: tf.DType,
) -> tuple[float, Any]:
    """
    Move by rho, halved until the ELBO does not fall by more than rounding.

    :param move: to a point, whose second entry is its ELBO.
    :param elbo: before the step.
    :param dtype: of the products.
    :return: the rho that was taken and the point, or 0 and None if none was found.
    """
    floor = elbo - _ROUNDING[dtype] * abs(elbo)
    for _ in range(_MAX_HALVINGS):
        point = move(rho)
        if math.isfinite(point[1]) and point[1] >= floor:
            return rho, point
        rho /= 2
    return 0.0, None


def grown(rho: float) -> float:
    """:return: the rho to try next."""
    return min(1.0, _GROWTH * rho)
