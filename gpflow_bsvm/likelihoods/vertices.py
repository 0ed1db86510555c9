"""Where the hinges of all levels together are largest: what their normaliser has to look at."""

from __future__ import annotations

import itertools
import math

import numpy as np
from gpflow.base import AnyNDArray

from .levels import Levels

#: So many places are looked at, at most.
_MOST_VERTICES = 20_000


def losses_at_vertices(levels: Levels) -> AnyNDArray:
    """
    Where hinges bend, f_k = +-1, the latent space is cut into polytopes; in each of them losses
    are linear and sum_y L(y | g) is convex, so that it is largest at a vertex.

    :return: [V, 2], losses of y = +1 and -1 at all vertices, of penalty 1.
    :raise ValueError: if there are too many.
    """
    T, Q = levels.W.shape
    if math.comb(2 * T, Q) > _MOST_VERTICES:
        raise ValueError(
            f"normalizer=True is to be had for fewer levels or latent functions: {T} and {Q} have "
            f"{math.comb(2 * T, Q)} vertices"
        )
    planes, ends = np.tile(levels.W, (2, 1)), np.concatenate([1 - levels.b, -1 - levels.b])
    chosen = np.array(list(itertools.combinations(range(2 * T), Q)))
    A, c = planes[chosen], ends[chosen]
    regular = np.abs(np.linalg.det(A)) > 1e-12
    g = np.linalg.solve(A[regular], c[regular][..., None])[..., 0]
    f = levels.b + g @ levels.W.T
    positive = 2 * (1 - levels.t) * np.maximum(0, 1 - f)
    negative = 2 * levels.t * np.maximum(0, 1 + f)
    return np.stack([positive.mean(axis=1), negative.mean(axis=1)], axis=-1)
