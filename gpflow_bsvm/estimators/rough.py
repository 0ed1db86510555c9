"""
Kernels that are learned from a short lengthscale.

If f is rough in one column, such as a date, learning may end in a local optimum: a slightly shorter
lengthscale of this column lowers the bound, and only a much shorter one raises it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

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


def shorter(model: BSVM, rows: ArraySource) -> tuple[gpflow.Parameter, AnyNDArray] | None:
    """
    :return: a parameter and its lengthscales, one of them multiplied by one of `FACTORS`, with the
        largest bound; None if none raises the bound. The column is chosen with the first factor.
    """
    bound = Bound(model, rows)
    before = bound()
    tried: list[tuple[float, gpflow.Parameter, AnyNDArray]] = []

    def attempt(parameter: gpflow.Parameter, column: int, factor: float) -> float:
        start = parameter.unconstrained_variable.numpy()
        values = parameter.numpy()
        values[column] *= factor
        parameter.assign(values)
        tried.append((bound(), parameter, values))
        parameter.unconstrained_variable.assign(start)
        return tried[-1][0]

    places = [(p, n) for p in lengthscales(model) if p.shape.rank for n in _many_valued(rows)]
    if not places:
        return None
    _, best = max((attempt(*place, FACTORS[0]), number) for number, place in enumerate(places))
    for factor in FACTORS[1:]:
        attempt(*places[best], factor)
    value, parameter, values = max(tried, key=lambda attempted: attempted[0])
    return (parameter, values) if value > before else None


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
    found[0].assign(found[1])
    history = learn()
    if Bound(model, rows)() > before:
        return history
    hyper.assign(kept[0])
    model.assign_natural(kept[1])
    return None
