r"""A link that fits the training labels, without held-out data.

A site is all that the posterior knows of its datum, so that taking site n out of q leaves what the
others say of f_n. With mu, v the marginal of Phi_n s, and w, r its site,

    v_-n = v / (1 - w v),    mu_-n = v_-n (mu / v - r),

plus residual variance and prior mean: the leave-one-out marginal, exact for Gaussian sites that
would not change without datum n. The link is then fitted to the labels by maximum likelihood: for
two classes p(y = 1) = Phi((g f + d) ...), for more the class probabilities of g f.

Hyperparameters that were fitted to the same data are not left out; see the README for what that
does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..checks import check_fit
from ..data.sparse import for_likelihood
from ..engine.natural import compiled_solve
from ..engine.projected_data import EngineModel, View
from ..engine.quasi_newton import QuasiNewton
from ..engine.shared_graph import Compiled
from ..engine.statistics import Rows, cavity, localise, marginals
from .marginals import compiled_log_density

#: Of the optimiser; two parameters need some ten.
_ITERATIONS = 100


def leave_one_out(
    model: EngineModel, data: tuple[Any, Any], *, sample_weight: Any = None
) -> tuple[AnyNDArray, AnyNDArray]:
    """
    :param model: fitted to `data`.
    :param data: X [N, D] and Y [N, P].
    :param sample_weight: [N], as in the fit.
    :return: mean and variance of f(x_n) without datum n, both [N, L].
    :raise ValueError: for bad data.
    """
    return _without(model, *check_fit(model, data, sample_weight))


def _without(
    model: EngineModel, X: AnyNDArray, Y: AnyNDArray, weight: AnyNDArray
) -> tuple[AnyNDArray, AnyNDArray]:
    q = compiled_solve(*model.natural())
    without = _without_one.bind(model.likelihood)
    chunks = View(model, X, Y, weight).chunks(tf.as_dtype(default_float()))
    means, variances = zip(*(without(q.R, q.c, *rows) for rows in chunks))
    return np.concatenate(means), np.concatenate(variances)


@Compiled
def _without_one(
    likelihood: Likelihood, R: tf.Tensor, c: tf.Tensor, *rows: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    seen = Rows(*rows)
    f = marginals(seen.features, R, c)
    return cavity(seen, f, *localise(likelihood, seen, f)[:2])


def leave_one_out_density(
    model: EngineModel, data: tuple[Any, Any], *, sample_weight: Any = None
) -> float:
    """
    A criterion for whatever is to be chosen: the mean of log p(y_n | all other data), with the
    likelihood's present link.

    Arguments and errors as in `leave_one_out`.

    :return: in nats per row (of weight 1), at most 0; greater is better.
    """
    X, Y, weight = check_fit(model, data, sample_weight)
    f = _without(model, X, Y, weight)
    log_p = compiled_log_density.bind(model.likelihood)(for_likelihood(X), *f, Y)
    return float(np.sum(weight[:, 0] * log_p) / np.sum(weight))


def calibrate(
    model: EngineModel, data: tuple[Any, Any], *, sample_weight: Any = None
) -> dict[str, float]:
    """
    Set the link's parameters of `model.likelihood` to those that maximise
    `leave_one_out_density`: scale and offset for two classes, scale for more.

    Arguments and errors as in `leave_one_out`.

    :return: the values by name.
    :raise ValueError: for a likelihood without `link_parameters`.
    """
    likelihood = model.likelihood
    if not hasattr(likelihood, "link_parameters"):
        raise ValueError(
            f"{type(likelihood).__name__} has no link to calibrate: it needs `link_parameters`, "
            "as the likelihoods of gpflow_bsvm have"
        )
    X, Y, weight = check_fit(model, data, sample_weight)
    f = _without(model, X, Y, weight)
    log_density = compiled_log_density.bind(likelihood)
    X = for_likelihood(X)
    variables = [p.unconstrained_variable for p in likelihood.link_parameters.values()]

    def value_and_gradient() -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            value = tf.reduce_sum(weight[:, 0] * log_density(X, *f, Y)) / np.sum(weight)
        return value, tape.gradient(value, variables)

    QuasiNewton(variables).maximise(value_and_gradient, _ITERATIONS)
    return {name: float(p.numpy()) for name, p in likelihood.link_parameters.items()}
