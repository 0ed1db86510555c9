"""
Kernels that are learned from a short lengthscale.

If f is rough in one column, such as codes of names, learning may end in a local optimum: a slightly
shorter lengthscale of this column lowers the bound, and only a much shorter one raises it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.config import default_float

from ..data.sources import ArraySource
from ..engine.contracts import shares_shifts
from ..engine.hyperparameters import Hyperparameters
from ..engine.natural import compiled_solve
from ..engine.projected_data import ProjectedData
from ..engine.statistics import compiled_localise, compiled_sum_sites
from ..inference import History
from ..inference.cavi import Ascent, Point, compiled_sweeps
from ..models import BSVM

#: The factors of a lengthscale that are tried.
FACTORS = (0.1, 0.03)
#: The factors that are tried before a kernel is learned with a steep loss. Afterwards, a huge
#: variance makes up for a long lengthscale, and a much shorter one is no better with it.
FIRST_FACTORS = (0.3, 0.1, 0.03)
#: Columns with fewer distinct values are skipped: f cannot be rough in them.
FEWEST_VALUES = 10
#: With more columns to try, none is tried.
MOST_COLUMNS = 30
#: Sweeps for each lengthscale that is tried. FIRST_SWEEPS select LAST_COLUMNS columns for them.
SWEEPS = 6
FIRST_SWEEPS = 2
LAST_COLUMNS = 3


def lengthscales(model: BSVM) -> list[gpflow.Parameter]:
    """:return: trainable lengthscales without repetition."""
    named = gpflow.utilities.parameter_dict(model.kernel)
    found = [p for name, p in named.items() if name.endswith(".lengthscales") and p.trainable]
    return list({id(p): p for p in found}.values())


def bound_of(model: BSVM, rows: ArraySource) -> Callable[[int], float]:
    """
    :return: a function of a number of sweeps: the bound after these sweeps from the present sites,
        at the model's current hyperparameters, with their log prior density; never NaN.
    """
    climb = compiled_sweeps.bind(model.likelihood)
    hyper = Hyperparameters(model)
    share = shares_shifts(model)
    zero = tf.zeros([], default_float())
    localise = compiled_localise.bind(model.likelihood)
    q = compiled_solve(model.natural())
    sites, _ = localise(q, ProjectedData(model, rows).everything())

    def bound(sweeps: int) -> float:
        projected = ProjectedData(model, rows).everything()
        sums = compiled_sum_sites(projected, sites)
        start = Ascent.start(Point(sums, zero - math.inf, sums))
        ascent, _ = climb(start, share, (), zero, sweeps, projected)
        found = float(ascent.point.value) + float(hyper.log_prior_density())
        return found if math.isfinite(found) else -math.inf

    return bound


def shorter(
    model: BSVM, rows: ArraySource, factors: Sequence[float] = FACTORS
) -> tuple[gpflow.Parameter, AnyNDArray] | None:
    """
    :return: a parameter and its new lengthscales, of which one is multiplied by the factor with the
        largest bound; None if no factor raises the bound. The first factor chooses the column.
    """
    X = next(iter(rows.chunks())).X.numpy()
    columns = [n for n, column in enumerate(X.T) if len(np.unique(column)) >= FEWEST_VALUES]
    arrays = [parameter for parameter in lengthscales(model) if parameter.shape.rank]
    places = [(parameter, column) for parameter in arrays for column in columns]
    if not 0 < len(places) <= MOST_COLUMNS:
        return None
    bound = bound_of(model, rows)

    def at(place: tuple[gpflow.Parameter, int], factor: float, sweeps: int) -> float:
        """:return: the bound with one lengthscale multiplied; parameters are restored."""
        variable = place[0].unconstrained_variable
        start = variable.numpy()
        place[0].assign(_times(*place, factor))
        found = bound(sweeps)
        variable.assign(start)
        return found

    places.sort(key=partial(at, factor=factors[0], sweeps=FIRST_SWEEPS), reverse=True)
    best = max(places[:LAST_COLUMNS], key=partial(at, factor=factors[0], sweeps=SWEEPS))
    bounds = [at(best, factor, SWEEPS) for factor in factors]
    if max(bounds) <= bound(SWEEPS):
        return None
    return best[0], _times(*best, factors[int(np.argmax(bounds))])


def _times(parameter: gpflow.Parameter, column: int, factor: float) -> AnyNDArray:
    """:return: the parameter's lengthscales, with one column's multiplied by the factor."""
    values = parameter.numpy()
    values[column] *= factor
    return np.asarray(values)


def begin_shorter(model: BSVM, rows: ArraySource) -> None:
    """Set one lengthscale to one of `FIRST_FACTORS` times its value, if this raises the bound."""
    if (found := shorter(model, rows, FIRST_FACTORS)) is not None:
        parameter, values = found
        parameter.assign(values)


def learn_from_shorter(
    model: BSVM, rows: ArraySource, some: ArraySource, learn: Callable[[], History]
) -> History | None:
    """
    :param rows: the rows that the kernel was learned from.
    :param some: rows for the choice of a lengthscale.
    :param learn: learns the kernel, beginning with its present parameters.
    :return: the history of learning the kernel again from a shorter lengthscale; None if this does
        not raise the bound: the model is then as before.
    """
    if (found := shorter(model, some)) is None:
        return None
    before = bound_of(model, rows)(SWEEPS)
    hyper = Hyperparameters(model)
    kept = hyper.state(), model.natural()
    parameter, values = found
    parameter.assign(values)
    history = learn()
    if bound_of(model, rows)(SWEEPS) > before:
        return history
    hyper.assign(kept[0])
    model.assign_natural(kept[1])
    return None
