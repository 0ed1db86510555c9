"""The best kernel parameters and penalty by a criterion, from several starts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood
from gpflow.utilities import deepcopy, multiple_assign, read_values
from sklearn.exceptions import ConvergenceWarning

from ...checks import check_choice, check_number, check_whole
from ...likelihoods.penalized import check_penalty
from .ascent import ascend
from .by_scipy import by_scipy
from .criterion import Criterion
from .mode import Mode, svm_mode
from .search import Place, Search, Values
from .slack import likelihood_of
from .walk import walk

_BY_SLOPES = ("L-BFGS-B", "gradient-ascent")
#: Those of the paper, where the penalty stands for itself and other parameters for logarithms.
_OWN = ("random-walk", "gradient-ascent")
METHODS = ("Nelder-Mead", "Powell", "L-BFGS-B", *_OWN)
#: An optimum is at the edge of the search if so near to it, in the logarithm.
_EDGE = 1e-3


class Optimum(NamedTuple):
    """The end of the search from one start, or its best place on the validation rows."""

    value: float  #: of the criterion; NaN where it has none
    parameters: dict[str, AnyNDArray]  #: what was learned, "penalty" too if it was
    evaluations: int
    converged: bool
    at_edge: tuple[str, ...]  #: parameters that the search would have taken further
    validation_error: float | None = None  #: share of validation rows on the wrong side
    path: tuple[Place, ...] = ()  #: from the start to the end of the search


class Selection(NamedTuple):
    """What `optimise` found."""

    best: Optimum
    optima: tuple[Optimum, ...]  #: of every start, in their order
    penalty: float  #: the best, or the given one
    kernel: Kernel  #: a copy, with the best values
    slack: str  #: of the criterion's machine, "linear" or "quadratic"

    @property
    def likelihood(self) -> Likelihood:
        """:return: the likelihood of this slack and penalty, as `plug_in` asks for it."""
        return likelihood_of(self.slack, self.penalty)

    def machine(self, data: tuple[Any, Any]) -> Mode:
        """
        :param data: X [N, D] and Y [N, 1].
        :return: the support vector machine that the criterion looked at, solved on these rows.
        """
        return svm_mode(self.kernel, data, self.penalty, slack=self.slack)

    def spread(self) -> dict[str, tuple[AnyNDArray, AnyNDArray]]:
        """:return: least and greatest value among the optima: of each parameter and "value"."""
        rows = [{**o.parameters, "value": np.asarray(o.value)} for o in self.optima]
        columns = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        return {name: (column.min(axis=0), column.max(axis=0)) for name, column in columns.items()}

    def __str__(self) -> str:
        """:return: a line for each parameter about which the starts disagree."""
        lines = [f"{len(self.optima)} starts, best value {self.best.value:.6g}"]
        for name, (least, greatest) in self.spread().items():
            low, high = (np.array2string(end, precision=3) for end in (least, greatest))
            best = self.best.parameters.get(name, np.asarray(self.best.value))
            lines.append(f"{name}: {low} to {high}, best {np.array2string(best, precision=3)}")
        errors = [o.validation_error for o in self.optima if o.validation_error is not None]
        if errors:
            lines.append(f"validation error: {min(errors):.3g} to {max(errors):.3g}")
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
    validation: tuple[Any, Any] | None = None,
    seed: int = 0,
) -> Selection:
    """
    Search for the best logarithms of what is trainable in the kernel and of the penalty, from the
    present values and from every other start. The kernel ends with the best values of all, and
    `machine(data)` of what is returned, or `plug_in` of it, is the support vector machine.

    :param penalty: C, where the search starts.
    :param learn_penalty: None: if the criterion depends on more than the product of both.
    :param starts: more of them, such as `random_starts`: values by the names of GPflow's
        `parameter_dict(kernel)`, and "penalty". An empty one is the present values again.
    :param method: of SciPy: without derivatives "Nelder-Mead" or "Powell", or "L-BFGS-B" for
        criteria with a `gradient`; these hold at fixed sets of support vectors only. From Gold and
        Sollich (2003), with the penalty itself, not its logarithm: "random-walk", greedy, one
        parameter after another (section 4.1); "gradient-ascent", by gradients alone, with a rate
        for each parameter (section 4.3), for criteria without values, too (`SampledEvidence`).
    :param reach: no value ends more than this factor away from its start, as criteria have endless
        plateaus.
    :param max_evaluations: of the criterion or its gradient, for each start.
    :param validation: X and Y of other rows, for early stopping (section 5.3.2): each search
        ends at the place on its path whose support vector machine errs least on them (the last
        such), and the best start is the one that errs least, then the better by the criterion.
    :param seed: of "random-walk", which takes another path from each start, equal ones too.
    :return: the best, all optima, and the machine's kernel, penalty and slack. Warns of a best
        place at the edge of the search.
    :raise ValueError: for other options, for what the criterion refuses at a start, and for
        parameters that are not positive or of which none is trainable.
    """
    check_choice(METHODS, method=method)
    check_whole(1, max_evaluations=max_evaluations)
    check_whole(0, seed=seed)
    check_number(1 + 1e-6, reach=reach)
    _check_fits(criterion, method, len(starts) + 1, validation)
    learn = criterion.looks_at_penalty if learn_penalty is None else learn_penalty
    begin = partial(Search, linear_penalty=method in _OWN, validation=validation)
    search = begin(criterion, kernel, data, check_penalty(penalty), learn)
    with _restoring(kernel):
        points = [search.at(start) for start in ({}, *starts)]
        rngs = [np.random.default_rng([seed, number]) for number in range(len(points))]
        optima = tuple(
            _run(search, x, method, math.log(reach), max_evaluations, rng)
            for x, rng in zip(points, rngs)
        )
        best = min(optima, key=lambda optimum: _merit(criterion, optimum))
        chosen = search.move(search.at(best.parameters))
        # so that its warnings concern the chosen values
        if method == "gradient-ascent":
            criterion.gradient(kernel, data, chosen)
        else:
            criterion(kernel, data, chosen)
        _warn_of_edges(best)
        slack = getattr(criterion, "slack", "linear")
        return Selection(best, optima, chosen, deepcopy(kernel), slack)


def _warn_of_edges(best: Optimum) -> None:
    if best.at_edge:
        warnings.warn(
            f"the best place is at the edge of the search in {', '.join(best.at_edge)}: the "
            "criterion may have no optimum there; start elsewhere, fix such parameters, or search "
            "further by a larger reach",
            ConvergenceWarning,
            stacklevel=3,
        )


def _check_fits(criterion: Criterion, method: str, num_starts: int, validation: Any) -> None:
    name = type(criterion).__name__
    if method in _BY_SLOPES and not criterion.has_gradient:
        raise ValueError(f'{name} has no gradient: use method="Nelder-Mead" or "random-walk"')
    if not criterion.has_value:
        if method != "gradient-ascent":
            raise ValueError(
                f'{name} has gradients only: use method="gradient-ascent", or give it rungs'
            )
        if num_starts > 1 and validation is None:
            raise ValueError(
                f"{name} has gradients only, and cannot tell which of {num_starts} starts ended "
                "best: give validation=(X, Y), or it rungs, or call optimise for each start"
            )


def _merit(criterion: Criterion, optimum: Optimum) -> tuple[float, float]:
    """:return: the quantities that are least for the best optimum."""
    error, cost = optimum.validation_error, criterion.cost(optimum.value)
    return (0.0 if error is None else error, 0.0 if math.isnan(cost) else cost)


@contextmanager
def _restoring(kernel: Kernel) -> Iterator[None]:
    """Restore the kernel after any failure."""
    before = read_values(kernel)
    try:
        yield
    except BaseException:
        multiple_assign(kernel, before)
        raise


def _error(place: Place) -> float:
    return math.nan if place.validation_error is None else place.validation_error


def _run(
    search: Search,
    x: AnyNDArray,
    method: str,
    reach: float,
    most: int,
    rng: np.random.Generator,
) -> Optimum:
    """:return: the end of the search from x, or its best place on the validation rows."""
    search.path, bounds = [], search.bounds(x, reach)
    if method == "gradient-ascent":
        end = ascend(search, x, bounds, most)
    else:
        cost = search.criterion.cost(search.value(x))  # raises its errors about the start
        search.keep(x, cost)
        if method == "random-walk":
            end = walk(search, x, cost, bounds, most, rng)
        else:
            end = by_scipy(search, x, method, bounds, most)
    place = min(reversed(search.path), key=_error) if search.validates else search.path[-1]
    at = search.at(place.parameters)
    value = search.value(at) if math.isnan(place.value) else place.value
    gap = np.abs(at[:, None] - bounds).min(axis=1) / search.scale(at)
    edges = tuple(name for name, part in search.split(gap < _EDGE).items() if part.any())
    numbers = (end.evaluations, end.converged)
    path = tuple(search.path)
    return Optimum(value, place.parameters, *numbers, edges, place.validation_error, path)
