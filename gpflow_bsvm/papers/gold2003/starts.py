"""Where searches start, besides the present values."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel

from ...checks import check_number, check_whole
from ...likelihoods.penalized import check_penalty
from .search import PENALTY, positive_values

#: Least and greatest value, by name.
Ranges = Mapping[str, tuple[float, float]]


def random_starts(
    kernel: Kernel,
    penalty: float,
    num: int,
    *,
    width: float = 1.0,
    ranges: Ranges | None = None,
    seed: int = 0,
) -> list[dict[str, AnyNDArray]]:
    """
    :param num: how many.
    :param width: standard deviation of the logarithms about the present values.
    :param ranges: by name, least and greatest value of parameters, and of "penalty", that are drawn
        uniformly instead: their logarithms, but the penalty itself, as Gold and Sollich (2003,
        section 4.3) have them.
    :return: starts for `optimise`, with "penalty".
    :raise ValueError: for other options, or a range of what is not trainable.
    """
    check_whole(0, num=num, seed=seed)
    check_number(0, width=width)
    rng = np.random.default_rng(seed)
    values = {name: np.asarray(value) for name, value in positive_values(kernel).items()}
    values[PENALTY] = np.asarray(check_penalty(penalty))
    ranges = _checked(ranges or {}, values)

    def draw(name: str, value: AnyNDArray) -> AnyNDArray:
        if name not in ranges:
            return np.asarray(value * np.exp(width * rng.normal(size=value.shape)))
        if name == PENALTY:
            return np.asarray(rng.uniform(*ranges[name]))
        low, high = map(math.log, ranges[name])
        return np.asarray(np.exp(rng.uniform(low, high, size=value.shape)))

    return [{name: draw(name, value) for name, value in values.items()} for _ in range(num)]


def _checked(ranges: Ranges, values: Mapping[str, AnyNDArray]) -> Ranges:
    unknown = set(ranges) - set(values)
    if unknown:
        raise ValueError(f"ranges name {sorted(unknown)}; trainable are {', '.join(values)}")
    for name, ends in ranges.items():
        if len(ends) != 2 or not 0 < ends[0] <= ends[1] < np.inf:
            raise ValueError(f"the range of {name} must be two positive ends, got {ends}")
    return ranges
