"""Optimize a criterion over kernel parameters and penalty, from several starts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood
from gpflow.utilities import multiple_assign, read_values
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from ...checks import check_choice, check_number, check_whole
from ...engine.projection import check_is_kernel
from ...engine.structure import copied
from ...likelihoods.base import check_penalty
from ...notices import warn
from .criterion import Criterion
from .mode import Mode, svm_mode, trainable
from .squared_hinge import likelihood_of

#: Values of parameters by name; parameters without a value do not change.
Values = Mapping[str, Any]
PENALTY = "penalty"
METHODS = ("Nelder-Mead", "Powell", "L-BFGS-B")
#: First steps of Nelder-Mead, in logarithms.
_STEP = 0.5
#: An optimum within this distance (in logarithms) of the search's edge counts as at the edge.
_EDGE = 1e-3


class Optimum(NamedTuple):
    """The end of the search from one start."""

    value: float  #: of the criterion
    parameters: dict[str, AnyNDArray]  #: learned values, including "penalty" if learned
    evaluations: int
    converged: bool
    at_edge: tuple[str, ...]  #: parameters limited by the search's edge


class Selection(NamedTuple):
    """The result of `optimise`."""

    best: Optimum
    optima: tuple[Optimum, ...]  #: one per start, in order
    penalty: float  #: the best, or the given one
    kernel: Kernel  #: a copy with the best values
    slack: str  #: slack of the machine, "linear" or "quadratic"

    @property
    def likelihood(self) -> Likelihood:
        """:return: the likelihood of this slack and penalty, for `plug_in`."""
        return likelihood_of(self.slack, self.penalty)

    def machine(self, data: tuple[Any, Any]) -> Mode:
        """:return: the criterion's support vector machine, solved on X [N, D] and Y [N, 1]."""
        return svm_mode(self.kernel, data, self.penalty, slack=self.slack)

    def __str__(self) -> str:
        """:return: a string with a line for each start: value and parameters at its end."""
        lines = [f"{len(self.optima)} starts, best value {self.best.value:.6g}"]
        for one in self.optima:
            found = [f"{k}: {np.array2string(v, precision=3)}" for k, v in one.parameters.items()]
            edge = "; at the edge of the search: " + ", ".join(one.at_edge) if one.at_edge else ""
            lines.append(f"{one.value:.6g} at {', '.join(found)}{edge}")
        return "\n".join(lines)


def optimise(
    criterion: Criterion,
    kernel: Kernel,
    data: tuple[Any, Any],
    penalty: float,
    *,
    learn_penalty: bool | None = None,
    starts: Sequence[Values] = (),
    method: str = "Nelder-Mead",
    reach: float = 1e3,
    max_evaluations: int = 400,
) -> Selection:
    """
    Search with `scipy.optimize.minimize` for the best logarithms of the kernel's trainable
    parameters and of the penalty, from the current values and from every other start. The kernel
    gets the best values; if the search fails, it is unchanged.

    :param penalty: C at the start of the search.
    :param learn_penalty: whether to learn the penalty; None: only if the criterion depends on more
        than its product with the kernel.
    :param starts: further starts, for instance from `random_starts`: values under GPflow's names
        (`parameter_dict(kernel)`) and "penalty".
    :param method: "Nelder-Mead" or "Powell", which need no derivatives; or "L-BFGS-B", for criteria
        with a `gradient` (which assumes fixed sets of support vectors).
    :param reach: the largest factor by which a value may differ from its start; needed because
        criteria have infinite plateaus.
    :param max_evaluations: largest number of evaluations (of criterion or gradient) per start.
    :return: the best optimum and all optima; a warning is raised if the best is at an edge.
    :raise ValueError: for invalid options, if the criterion fails at a start, for parameters that
        are not positive, or if no parameter is trainable.
    """
    check_is_kernel(kernel)
    check_choice(METHODS, method=method)
    check_whole(1, max_evaluations=max_evaluations)
    check_number(1 + 1e-6, reach=reach)
    if method == "L-BFGS-B" and not criterion.has_gradient:
        raise ValueError(f'{type(criterion).__name__} has no gradient: use method="Nelder-Mead"')
    learn = criterion.looks_at_penalty if learn_penalty is None else learn_penalty
    search = _Search(criterion, copied(kernel), data, check_penalty(penalty), learn)
    points = [search.at({})] + [search.at(start) for start in starts]
    optima = [search.run(x, method, math.log(reach), max_evaluations) for x in points]
    best = min(optima, key=lambda optimum: criterion.cost(optimum.value))
    chosen = search.assign(best.parameters)
    criterion(search.kernel, data, chosen)  # so that warnings concern the best values
    multiple_assign(kernel, read_values(search.kernel))
    if best.at_edge:
        warn(
            f"the best point is at the edge of the search in {', '.join(best.at_edge)}: perhaps no "
            "optimum exists; start elsewhere, fix these parameters, or use a larger reach",
            ConvergenceWarning,
        )
    return Selection(best, tuple(optima), chosen, search.kernel, criterion.slack)


class _Search:
    """The cost of a criterion, as a function of a vector of logarithms, [P]."""

    def __init__(
        self, criterion: Criterion, kernel: Kernel, data: Any, penalty: float, learn: bool
    ) -> None:
        self.kernel = kernel
        self._criterion = criterion
        self._data = data
        self._penalty = penalty
        self._start = _values_of(kernel, penalty)
        if not learn:
            del self._start[PENALTY]
        if not self._start:
            raise ValueError("there is nothing to search: no parameter of the kernel is trainable")

    def at(self, values: Values) -> AnyNDArray:
        """:return: the vector for a start."""
        if unknown := set(values) - set(self._start) - {PENALTY}:
            known = ", ".join(self._start)
            raise ValueError(f"a start has {sorted(unknown)}, but only {known} are trainable")
        parts = {name: np.asarray(values.get(name, own)) for name, own in self._start.items()}
        for name, part in parts.items():
            if part.shape != self._start[name].shape or not (part > 0).all():
                raise ValueError(
                    f"a start's {name} must be positive and of the kernel's shape, got {part}; "
                    "set_trainable(..., False) fixes a parameter"
                )
        return np.log(np.concatenate([np.ravel(part) for part in parts.values()]))

    def run(self, x: AnyNDArray, method: str, reach: float, most: int) -> Optimum:
        by_slope = method == "L-BFGS-B"
        bounds = np.stack([x - reach, x + reach], axis=1)
        options: dict[str, Any] = {"maxfun" if by_slope else "maxfev": most}
        if method == "Nelder-Mead":
            simplex = np.concatenate([x[None], x + min(_STEP, reach) * np.eye(len(x))])
            options |= {"initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-6}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._value(x)  # raises errors about the start
            found = minimize(
                self._cost_and_slope if by_slope else self._cost,
                x,
                method=method,
                jac=by_slope or None,
                bounds=bounds,
                options=options,
            )
        near = self._split(np.abs(found.x[:, None] - bounds).min(axis=1) < _EDGE)
        edges = tuple(name for name, part in near.items() if part.any())
        value = self._criterion.cost(float(found.fun))
        parameters = self._split(np.exp(found.x))
        return Optimum(value, parameters, int(found.nfev), bool(found.success), edges)

    def assign(self, values: Values) -> float:
        """:return: the penalty, after setting the kernel's parameters."""
        learned = {name: value for name, value in values.items() if name != PENALTY}
        multiple_assign(self.kernel, learned)
        return float(values.get(PENALTY, self._penalty))

    def _split(self, x: AnyNDArray) -> dict[str, AnyNDArray]:
        """:return: entries of a vector by name."""
        ends = np.cumsum([value.size for value in self._start.values()])[:-1]
        pairs = zip(self._start.items(), np.split(x, ends))
        return {name: part.reshape(value.shape) for (name, value), part in pairs}

    def _value(self, x: AnyNDArray) -> float:
        return self._criterion(self.kernel, self._data, self.assign(self._split(np.exp(x))))

    def _cost(self, x: AnyNDArray) -> float:
        """:return: the value to minimize; infinity if the kernel overflows."""
        try:
            return self._criterion.cost(self._value(x))
        except ValueError:
            return math.inf

    def _cost_and_slope(self, x: AnyNDArray) -> tuple[float, AnyNDArray]:
        """:return: the cost, and its derivatives in the logarithms."""
        penalty = self.assign(self._split(np.exp(x)))
        found = self._criterion.gradient(self.kernel, self._data, penalty)
        slopes = found.kernel | {PENALTY: np.asarray(found.penalty)}
        flat = np.concatenate([np.ravel(slopes[name]) for name in self._start])
        return self._criterion.cost(found.value), self._criterion.cost(1.0) * flat * np.exp(x)


def _values_of(kernel: Kernel, penalty: float) -> dict[str, AnyNDArray]:
    values = {name: parameter.numpy() for name, parameter in trainable(kernel).items()}
    return values | {PENALTY: np.asarray(penalty)}


def random_starts(
    kernel: Kernel, penalty: float, num: int, *, width: float = 1.0, seed: int = 0
) -> list[dict[str, AnyNDArray]]:
    """
    :param num: number of starts.
    :param width: standard deviation of the logarithms around the current values.
    :return: starts for `optimise`, with "penalty".
    :raise ValueError: for invalid options.
    """
    check_whole(0, num=num, seed=seed)
    check_number(0, width=width)
    rng = np.random.default_rng(seed)
    values = _values_of(kernel, check_penalty(penalty))
    return [
        {name: v * np.exp(width * rng.normal(size=v.shape)) for name, v in values.items()}
        for _ in range(num)
    ]
