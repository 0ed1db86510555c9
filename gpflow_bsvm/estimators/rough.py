"""
Kernels that are learned from a short lengthscale.

If f is rough in one column, such as codes of names, learning may end in a local optimum: a slightly
shorter lengthscale of this column lowers the bound, and only a much shorter one raises it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

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
#: Columns with fewer distinct values are skipped: f cannot be rough in them.
FEWEST_VALUES = 10
#: With more such columns, none is tried.
MOST_COLUMNS = 30
#: Number of sweeps for each lengthscale that is tried.
SWEEPS = 6


def lengthscales(model: BSVM) -> list[gpflow.Parameter]:
    """:return: trainable lengthscales without repetition."""
    named = gpflow.utilities.parameter_dict(model.kernel)
    found = [p for name, p in named.items() if name.endswith(".lengthscales") and p.trainable]
    return list({id(p): p for p in found}.values())


class Bound:
    """The bound at a model's current hyperparameters, after a few sweeps from the same sites."""

    def __init__(self, model: BSVM, rows: ArraySource) -> None:
        """The first sites are those of the model's q."""
        self._model = model
        self._source = rows
        self._hyper = Hyperparameters(model)
        self._share = shares_shifts(model)
        self._climb = compiled_sweeps.bind(model.likelihood)
        localise = compiled_localise.bind(model.likelihood)
        projected = ProjectedData(model, rows).everything()
        self._sites, _ = localise(compiled_solve(model.natural()), projected)

    def __call__(self) -> float:
        """:return: the bound, with the log prior density of the hyperparameters."""
        projected = ProjectedData(self._model, self._source).everything()
        sums = compiled_sum_sites(projected, self._sites)
        zero = tf.zeros([], default_float())
        start = Ascent.start(Point(sums, zero - math.inf, sums))
        ascent, _ = self._climb(start, self._share, (), zero, SWEEPS, projected)
        return float(ascent.point.value) + float(self._hyper.log_prior_density())

    def at(self, trial: Trial) -> float:
        """:return: the bound with other lengthscales. Parameters are as before at the end."""
        variable = trial.parameter.unconstrained_variable
        start = variable.numpy()
        trial.parameter.assign(trial.values)
        bound = self()
        variable.assign(start)
        return bound


class Trial(NamedTuple):
    """A parameter, and lengthscales to assign to it."""

    parameter: gpflow.Parameter
    values: AnyNDArray


class Place(NamedTuple):
    """The lengthscale of a column."""

    parameter: gpflow.Parameter
    column: int

    def times(self, factor: float) -> Trial:
        """:return: all lengthscales, with this one multiplied by the factor."""
        values = self.parameter.numpy()
        values[self.column] *= factor
        return Trial(self.parameter, values)


def shorter(model: BSVM, rows: ArraySource) -> Trial | None:
    """
    :return: lengthscales, one of them multiplied by one of `FACTORS`, with the largest bound; None
        if none raises the bound. The first factor chooses the column.
    """
    columns = _many_valued(rows)
    arrays = [parameter for parameter in lengthscales(model) if parameter.shape.rank]
    places = [Place(parameter, column) for parameter in arrays for column in columns]
    if not 0 < len(places) <= MOST_COLUMNS:
        return None
    bound = Bound(model, rows)
    first = [bound.at(place.times(FACTORS[0])) for place in places]
    best = places[int(np.argmax(first))]
    bounds = [max(first), *(bound.at(best.times(factor)) for factor in FACTORS[1:])]
    return best.times(FACTORS[int(np.argmax(bounds))]) if max(bounds) > bound() else None


def _many_valued(rows: ArraySource) -> list[int]:
    """:return: columns with at least `FEWEST_VALUES` distinct values."""
    X = next(iter(rows.chunks())).X.numpy()
    return [n for n, column in enumerate(X.T) if len(np.unique(column)) >= FEWEST_VALUES]


def learn_from_shorter(
    model: BSVM, rows: ArraySource, some: ArraySource, learn: Callable[[], History]
) -> History | None:
    """
    :param model: a model with a learned kernel.
    :param rows: the rows that the kernel was learned from.
    :param some: rows for the choice of a lengthscale.
    :param learn: learns the kernel, beginning with its present parameters.
    :return: the history of learning the kernel again from a shorter lengthscale; None if this does
        not raise the bound, and then the model is as before.
    """
    found = shorter(model, some)
    if found is None:
        return None
    before = Bound(model, rows)()
    hyper = Hyperparameters(model)
    kept = hyper.state(), model.natural()
    found.parameter.assign(found.values)
    history = learn()
    if Bound(model, rows)() > before:
        return history
    hyper.assign(kept[0])
    model.assign_natural(kept[1])
    return None
