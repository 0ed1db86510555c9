"""Marginals of f for any number of rows, chunk by chunk to limit memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray

from ..data.passes import map_over
from ..engine.contracts import Model, open_data, open_inputs
from ..engine.shared_graph import Compiled
from ..likelihoods.base import probabilities
from .estimators import in_units_of_y, of_f, of_log_density, of_moments


@in_units_of_y(of_moments)
@check_shapes("return[all]: [N, L]")
def predict_marginals(
    model: Model, X: Any, *, chunk_rows: int | None = None
) -> tuple[AnyNDArray, AnyNDArray]:
    """
    Mean and variance of f(x) under q, as in `model.predict_f`, but chunk by chunk.

    :param X: [N, D], in memory or np.memmap; or files, a `tf.data.Dataset` or
        `gpflow_bsvm.data.Blocks` (labels are ignored).
    :param chunk_rows: rows per chunk; if None, at most about 16 MB of features.
    :return: mean and variance, both [N, L].
    :raise ValueError: if X is not finite or not as wide as in training, or `chunk_rows` is below 1.
    """
    mean, variance = _predicted(model, X, chunk_rows)
    return mean.numpy(), variance.numpy()


def _predicted(
    model: Model, X: Any, chunk_rows: int | None, finish: Callable[..., Any] | None = None
) -> Any:
    """:return: results of `model.predictor(finish)` for all rows."""
    source = open_inputs(model, X, chunk_rows)
    predict = model.predictor(finish)
    return map_over(source, lambda batch: predict(batch.X))


@in_units_of_y(of_f, of_classes=True, by_class=True)
@check_shapes("return: [N, P]")
def predict_probabilities(model: Model, X: Any, *, chunk_rows: int | None = None) -> AnyNDArray:
    """
    P(y = c) of all classes, or P(y = 1) for two classes; in regression, the mean of y (for
    `Quantile`, the quantiles).

    Arguments and errors are as in `predict_marginals`.

    :return: [N, P].
    """
    return np.asarray(_predicted(model, X, chunk_rows, probabilities))


def predict_probits(model: Model, X: Any, *, chunk_rows: int | None = None) -> AnyNDArray:
    """:return: z(x) [N, L] with p(y = 1 | x) = Phi(z(x)), for our likelihoods of two classes."""
    return np.asarray(_predicted(model, X, chunk_rows, probits))


@in_units_of_y(of_log_density)
@check_shapes("return: [N]")
def predict_log_density(model: Model, data: Any) -> AnyNDArray:
    """
    log p(y | x) of every row, as in `model.predict_log_density`.

    :param data: X [N, D] and Y [N, P], or other data accepted by a fit.
    :return: [N].
    :raise ValueError: for bad data.
    """
    return np.asarray(map_labelled(model, data, log_density))


def probits(likelihood: Any, X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    """:return: Phi^-1 of p(y = 1), [N, L]."""
    return likelihood.probit_argument(mean, variance)


def log_density(
    likelihood: Any, X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor, Y: tf.Tensor
) -> tf.Tensor:
    """:return: log p(y | x), [N], with the current link."""
    return likelihood.predict_log_density(X, mean, variance, Y)


compiled_log_density = Compiled(log_density)


@Compiled
def compiled_cdf(likelihood: Any, mean: tf.Tensor, variance: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
    """:return: P(y <= Y), for likelihoods of numbers."""
    return likelihood.predict_cdf(mean, variance, Y)


def map_f(model: Model, X: Any, function: Callable[..., Any], chunk_rows: int | None = None) -> Any:
    """
    :param function: a function of X, and mean and variance of f, for the rows of a chunk; it runs
        outside of the graph.
    :return: the rows returned by `function`, as tensors.
    """
    source = open_inputs(model, X, chunk_rows)
    predict = model.predictor()
    return map_over(source, lambda batch: function(batch.X, *predict(batch.X)))


def map_labelled(model: Model, data: Any, finish: Callable[..., Any]) -> Any:
    """
    :param finish: a function of the likelihood, X, mean and variance of f, and Y.
    :return: the rows returned by `finish`, as tensors.
    """
    source = open_data(model, data, part=True)
    predict = model.predictor(finish)
    return map_over(source, lambda batch: predict(batch.X, batch.Y))
