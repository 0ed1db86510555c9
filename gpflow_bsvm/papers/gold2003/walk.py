"""The greedy random walk: Metropolis' algorithm at temperature 0 (Gold & Sollich 2003, 4.1)."""

from __future__ import annotations

import numpy as np
from gpflow.base import AnyNDArray

from .search import Ending, Search

#: First steps, in logarithms, and where the steps of a search that has converged have ended.
_FIRST, _LAST = 0.5, 1e-3
#: A step grows by this if it was taken, and shrinks by it if not: in balance where half are taken,
#: as after each sweep with a rate measured over many, and nothing has to be counted.
_FACTOR = 1.3
#: The search also ends if so many sweeps have changed the criterion by less than this.
_SWEEPS, _CHANGE = 10, 1e-6


def walk(
    search: Search,
    x: AnyNDArray,
    cost: float,
    bounds: AnyNDArray,
    most: int,
    rng: np.random.Generator,
) -> Ending:
    """
    Each parameter in turn takes a Gaussian step, which stays if the criterion is better there.
    After each sweep the place is kept.

    The size of the steps of each parameter is in balance where half of them stay (the paper's
    50 %). More cannot: a step in one parameter of a hill d away from its top gains only between 0
    and 2 d, of probability Phi(2 d / size) - 1/2. So half is the rate on a long slope; near the top
    sizes shrink with d, by _FACTOR^(2 rate - 1) a step, and fewer stay, about a fifth while both
    shrink together. That sizes become small is the paper's sign that the walk has converged.

    :param cost: at x.
    :param bounds: [P, 2], which steps do not leave.
    :param most: evaluations.
    """
    scale, evaluations = search.scale(x), 1
    sizes, costs = _FIRST * scale, [cost]
    while evaluations < most:
        for entry in range(len(x)):
            y = x.copy()
            y[entry] = np.clip(x[entry] + sizes[entry] * rng.normal(), *bounds[entry])
            new, evaluations = search.cost(y), evaluations + 1
            better = new < cost
            sizes[entry] *= _FACTOR if better else 1 / _FACTOR
            x, cost = (y, new) if better else (x, cost)
            if evaluations == most:
                break
        search.keep(x, cost)
        costs.append(cost)
        still = len(costs) > _SWEEPS and costs[-1 - _SWEEPS] - cost < _CHANGE
        if still or (sizes < _LAST * scale).all():
            return Ending(x, evaluations, True)
    return Ending(x, evaluations, False)
