"""Active learning: select the rows of a pool to label, and a kernel for few labels."""

from __future__ import annotations

from .. import quiet  # isort: skip  # noqa: F401 - imports GPflow before others do

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from gpflow.utilities import multiple_assign, parameter_dict, read_values

from ..checks import may_hold
from ..data.sources import Source
from ..deep.keep_best import KeepBest
from ..engine.contracts import Model, open_data
from ..engine.hyperparameters import Hyperparameters
from ..engine.natural import Natural
from ..inference import CAVI
from ..likelihoods.classes import Classification
from ..prediction import uncertainty
from ..prediction.calibration import has_company, leave_one_out
from ..prediction.marginals import compiled_log_density

__all__ = ["POLICIES", "best_kernel"]

#: Policies by name: functions in `gpflow_bsvm.prediction` that score rows X [N, D] for a model. A
#: loop that queries the rows with the largest scores takes five lines
#: (docs/lab/active-learning.md). Alternatively, use scikit-activeml's strategies with a
#: `gpflow_bsvm.active.scikit_activeml.ModelClassifier`.
POLICIES: dict[str, Callable[[Model, AnyNDArray], AnyNDArray]] = {
    "variation_ratio": uncertainty.variation_ratio,
    "entropy": uncertainty.predictive_entropy,
    "margin": lambda model, X: -uncertainty.margin(model, X),
    "latent_variance": uncertainty.latent_variance,
    "bald": uncertainty.mutual_information,
}

#: Multiples of variances and lengthscales to compare.
VARIANCES = (0.5, 1.0, 2.0, 4.0)
LENGTHSCALES = (0.4, 0.6, 1.0, 1.6)


def kernel_multiples(model: Model) -> list[dict[str, Any]]:
    """:return: multiples of the kernel's trainable variances and lengthscales, by name."""
    now = {n: v for n, v in Hyperparameters(model).values().items() if n.startswith(".kernel")}
    grids = []
    for ending, multiples in ((".variance", VARIANCES), (".lengthscales", LENGTHSCALES)):
        named = {name: value for name, value in now.items() if name.endswith(ending)}
        grids.append([{n: by * v for n, v in named.items()} for by in multiples if named] or [{}])
    variances, lengthscales = grids
    return [a | b for a in variances for b in lengthscales if a or b]


def best_kernel(
    model: Model, X: AnyNDArray, Y: AnyNDArray, candidates: Sequence[dict[str, Any]] | None = None
) -> None:
    """
    Set a model to the best of its current kernel and the candidates, with q fitted to these rows.
    The criterion is the leave-one-out log density, summed over rows, plus the log prior density of
    the trainable parameters. (The evidence is unsuitable: with few labels, the unnormalized hinge
    prefers a variance of 0.) After an interrupt, the model has the best kernel so far.

    :param X: [n, D]; Y: [n, P]. The only row of a class does not count, because other rows cannot
        predict it. If no row counts, the kernel does not change.
    :param candidates: values by name, trainable or not; other parameters keep their values. None:
        `kernel_multiples` of the current kernel.
    :raise ValueError: for bad rows, or a candidate with an unknown name or an impossible value.
    :raise TypeError: for a model without closed-form steps.
    """
    data = open_data(model, (X, Y), part=True)
    places = _checked(model, kernel_multiples(model) if candidates is None else candidates)
    known = read_values(model)
    start = {name: known[name] for one in places for name in one}
    hyper = Hyperparameters(model)
    counted = np.full(len(Y), True)
    if isinstance(model.likelihood, Classification):
        counted = has_company(Y, counted)

    def loss() -> float:
        fit_from_prior(model, data)
        mean, variance = leave_one_out(model, data)
        log_p = compiled_log_density.bind(model.likelihood)(X, mean, variance, Y)
        return -float(log_p.numpy()[counted].sum() + hyper.log_prior_density())

    best = KeepBest(model, loss)
    try:
        for place in places if counted.any() else ():
            multiple_assign(model, {**start, **place})
            best()
    finally:
        best.restore()


def _checked(model: Model, candidates: Any) -> list[Mapping[str, Any]]:
    """:raise ValueError: unless these are values that the model's parameters can have, by name."""
    places = [*candidates] if isinstance(candidates, Iterable) else [candidates]
    if not all(isinstance(one, Mapping) for one in places):
        raise ValueError(
            'candidates must be a list of values by name, such as [{".kernel.variance": 2.0}], got '
            f"{candidates!r}"
        )
    known = parameter_dict(model)
    for name, value in (item for one in places for item in one.items()):
        if name not in known:
            raise ValueError(f"candidates name {name!r}, but the parameters are {', '.join(known)}")
        if not may_hold(known[name], value):
            raise ValueError(
                f"candidates set {name} to {value!r}: it must have shape "
                f"{tuple(known[name].shape)}, and values that its transform allows"
            )
    return places


def fit_from_prior(model: Model, data: Source | None) -> None:
    """Set q to the prior, and fit it with `CAVI` if there are data."""
    L, M = model.q_shape
    one = tf.eye(M, batch_shape=[L], dtype=default_float())
    model.assign_natural(Natural(tf.zeros([L, M], one.dtype), one))
    if data is not None:
        CAVI().run(model, data, progress=False)
