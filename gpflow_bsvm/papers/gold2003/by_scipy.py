"""SciPy's searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from scipy.optimize import OptimizeResult, minimize

from .search import Ending, Search

#: First steps of Nelder and Mead, in the logarithm.
_STEP = 0.5


def by_scipy(search: Search, x: AnyNDArray, method: str, bounds: AnyNDArray, most: int) -> Ending:
    """
    Search by SciPy; the place is kept after each iteration.

    :param method: "Nelder-Mead", "Powell" or "L-BFGS-B".
    :param bounds: [P, 2], of logarithms.
    :param most: evaluations.
    """
    with_slope = method == "L-BFGS-B"
    options: dict[str, Any] = {"maxfun" if with_slope else "maxfev": most}
    if method == "Nelder-Mead":
        step = min(_STEP, float(bounds[0, 1] - x[0]))
        simplex = np.concatenate([x[None], x + step * np.eye(len(x))])
        options |= {"initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-6}

    def keep(intermediate_result: OptimizeResult) -> None:
        search.keep(np.array(intermediate_result.x), float(intermediate_result.fun))

    def function(x: AnyNDArray) -> Any:
        if not with_slope:
            return search.cost(x)
        look = search.look(x)
        return look.cost, look.slope

    jac = with_slope or None
    how = {"jac": jac, "bounds": bounds, "options": options, "callback": keep}
    found = minimize(function, x, method=method, **how)
    keep(found)
    return Ending(found.x, int(found.nfev), bool(found.success))
