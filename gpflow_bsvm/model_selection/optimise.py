"""The best kernel parameters and penalty by a criterion, from several starts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from gpflow.utilities import multiple_assign, parameter_dict, read_values
from scipy.optimize import minimize

from ..checks import check_choice, check_number, check_whole
from ..likelihoods.penalty import check_penalty
from .criterion import Criterion, ModeCriterion

METHODS = ("Nelder-Mead", "Powell", "L-BFGS-B")
#: First steps of Nelder and Mead, in the logarithm.
_STEP = 0.5
#: An optimum is at the edge of the search if so near to it, in the logarithm.
_EDGE = 1e-3

#: Values of parameters by name; what is not named stays as it is.
Values = Mapping[str, Any]


class Optimum(NamedTuple):
    """Where the search from one start ended."""

    value: float  #: of the criterion
    parameters: dict[str, AnyNDArray]  #: what was learned, "penalty" too if it was
    evaluations: int
    converged: bool
    at_edge: tuple[str, ...]  #: parameters that the search would have taken further


class Selection(NamedTuple):
    """What `optimise` found."""

    best: Optimum
    optima: tuple[Optimum, ...]  #: of every start, in their order
    penalty: float  #: the best, or the given one

    def spread(self) -> dict[str, tuple[AnyNDArray, AnyNDArray]]:
        """:return: least and greatest value among the optima: of each parameter and "value"."""
        rows = [{**o.parameters, "value": np.asarray(o.value)} for o in self.optima]
        columns = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        return {name: (column.min(axis=0), column.max(axis=0)) for name, column in columns.items()}

    def __str__(self) -> str:
        """:return: what the starts disagree about, a line for each parameter."""
        lines = [f"{len(self.optima)} starts, best value {self.best.value:.6g}"]
        for name, (least, greatest) in self.spread().items():
            low, high = (np.array2string(end, precision=3) for end in (least, greatest))
            best = self.best.parameters.get(name, np.asarray(self.best.value))
            lines.append(f"{name}: {low} to {high}, best {np.array2string(best, precision=3)}")
        edges = sorted({name for optimum in self.optima for name in optimum.at_edge})
        return "\n".join(lines + [f"at the edge of the search: {', '.join(edges)}"] * bool(edges))


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
    Search for the best logarithms of what is trainable in the kernel and of the penalty, from the
    present values and from every other start. The kernel ends with the best values of all.

    :param penalty: C, where the search starts.
    :param learn_penalty: None: if the criterion looks at it beside the product of both.
    :param starts: more of them, such as `random_starts`: values by the names of GPflow's
        `parameter_dict(kernel)`, and "penalty".
    :param method: of SciPy: without derivatives "Nelder-Mead" or "Powell", or "L-BFGS-B" for
        criteria with a `gradient`; these are true at fixed sets of support vectors only.
    :param reach: no value ends by more than this factor away from its start: criteria have
        plateaus that have no end.
    :param max_evaluations: of the criterion, for each start.
    :raise ValueError: for other options, for what the criterion refuses at a start, and for
        parameters that are not positive or of which none is trainable.
    """
    check_choice(METHODS, method=method)
    check_whole(1, max_evaluations=max_evaluations)
    check_number(1 + 1e-6, reach=reach)
    learn = criterion.looks_at_penalty if learn_penalty is None else learn_penalty
    search = _Search(criterion, kernel, data, check_penalty(penalty), learn)
    if method == "L-BFGS-B":
        search.check_gradient()
    with _restoring(kernel):
        points = [search.at(start) for start in ({}, *starts)]
        optima = tuple(search.run(x, method, math.log(reach), max_evaluations) for x in points)
        best = min(optima, key=lambda optimum: criterion.cost(optimum.value))
        chosen = search.move(search.at(best.parameters))
        criterion(kernel, data, chosen)  # whatever it warns of is of the chosen values
    return Selection(best, optima, chosen)


def random_starts(
    kernel: Kernel, penalty: float, num: int, *, width: float = 1.0, seed: int = 0
) -> list[dict[str, AnyNDArray]]:
    """
    :param num: how many.
    :param width: standard deviation of the logarithms about the present values.
    :return: starts for `optimise`, with "penalty".
    """
    check_whole(0, num=num, seed=seed)
    check_number(0, width=width)
    rng = np.random.default_rng(seed)
    values = {name: np.asarray(value) for name, value in _trainable(kernel).items()}
    values["penalty"] = np.asarray(check_penalty(penalty))

    def draw(value: AnyNDArray) -> AnyNDArray:
        return np.asarray(value * np.exp(width * rng.normal(size=value.shape)))

    return [{name: draw(value) for name, value in values.items()} for _ in range(num)]


def _trainable(kernel: Kernel) -> dict[str, AnyNDArray]:
    """:return: values by name."""
    named = {name: p.numpy() for name, p in parameter_dict(kernel).items() if p.trainable}
    for name, value in named.items():
        if not (value > 0).all():
            raise ValueError(
                f"kernel{name} is {value}: logarithms are searched; set_trainable(..., False) "
                "keeps it as it is"
            )
    return named


@contextmanager
def _restoring(kernel: Kernel) -> Iterator[None]:
    """Whatever fails leaves the kernel as it was."""
    before = read_values(kernel)
    try:
        yield
    except BaseException:
        multiple_assign(kernel, before)
        raise


class _Search:
    """The criterion as a function of a vector of logarithms."""

    def __init__(
        self, criterion: Criterion, kernel: Kernel, data: Any, penalty: float, learn: bool
    ) -> None:
        self._criterion, self._kernel, self._data = criterion, kernel, data
        self._penalty = penalty
        self._start = _trainable(kernel) | ({"penalty": np.asarray(penalty)} if learn else {})
        if not self._start:
            raise ValueError("nothing is to be searched: no parameter of the kernel is trainable")

    def check_gradient(self) -> None:
        criterion = self._criterion
        if not isinstance(criterion, ModeCriterion) or not criterion.has_gradient:
            name = type(criterion).__name__
            raise ValueError(f'{name} has no gradient: use method="Nelder-Mead" or "Powell"')

    def at(self, values: Values) -> AnyNDArray:
        """:return: the vector of a start."""
        unknown = set(values) - set(self._start) - {"penalty"}
        if unknown:
            known = ", ".join(self._start)
            raise ValueError(f"a start names {sorted(unknown)}; trainable are {known}")
        parts = {name: np.asarray(values.get(name, own)) for name, own in self._start.items()}
        for name, part in parts.items():
            if part.shape != self._start[name].shape or not (part > 0).all():
                raise ValueError(f"a start's {name} must be positive, as {self._start[name]}")
        return np.log(np.concatenate([part.reshape(-1) for part in parts.values()]))

    def values(self, x: AnyNDArray) -> dict[str, AnyNDArray]:
        """:return: by name."""
        ends = np.cumsum([value.size for value in self._start.values()])[:-1]
        pairs = zip(self._start.items(), np.split(np.exp(x), ends))
        return {name: part.reshape(value.shape) for (name, value), part in pairs}

    def move(self, x: AnyNDArray) -> float:
        """Set the kernel's parameters. :return: the penalty."""
        values = self.values(x)
        penalty = float(values.pop("penalty", self._penalty))
        multiple_assign(self._kernel, values)
        return penalty

    def run(self, x: AnyNDArray, method: str, reach: float, most: int) -> Optimum:
        """:return: where the search from x ends."""
        bounds = np.stack([x - reach, x + reach], axis=1)
        self._value(x)  # raises what the criterion has to say of the start
        limit = "maxfun" if method == "L-BFGS-B" else "maxfev"
        options: dict[str, Any] = {limit: most}
        if method == "Nelder-Mead":
            simplex = np.concatenate([x[None], x + min(_STEP, reach) * np.eye(len(x))])
            options |= {"initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-6}
        with_slope = method == "L-BFGS-B"
        function = self._cost_and_slope if with_slope else self._cost
        found = minimize(
            function, x, method=method, jac=with_slope or None, bounds=bounds, options=options
        )
        at_edge = np.abs(found.x - x) > reach - _EDGE
        edges = tuple(name for name, part in self._split(at_edge).items() if part.any())
        value = self._criterion.cost(float(found.fun))
        return Optimum(value, self.values(found.x), int(found.nfev), bool(found.success), edges)

    def _split(self, x: AnyNDArray) -> dict[str, AnyNDArray]:
        ends = np.cumsum([value.size for value in self._start.values()])[:-1]
        return dict(zip(self._start, np.split(x, ends)))

    def _value(self, x: AnyNDArray) -> float:
        penalty = self.move(x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._criterion(self._kernel, self._data, penalty)

    def _cost(self, x: AnyNDArray) -> float:
        """:return: infinity where the kernel overflows."""
        try:
            return self._criterion.cost(self._value(x))
        except ValueError:
            return math.inf

    def _cost_and_slope(self, x: AnyNDArray) -> tuple[float, AnyNDArray]:
        penalty, criterion = self.move(x), self._criterion
        assert isinstance(criterion, ModeCriterion)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = criterion.gradient(self._kernel, self._data, penalty)
        slopes = found.kernel | {"penalty": np.asarray(found.penalty)}
        parts = [(slopes[name] * value).reshape(-1) for name, value in self.values(x).items()]
        return criterion.cost(found.value), criterion.cost(1.0) * np.concatenate(parts)
