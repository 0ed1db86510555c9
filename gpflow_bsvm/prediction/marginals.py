"""Marginals of f for any number of rows, in chunks of bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from ..checks import check_inputs, check_width
from ..data.sparse import for_likelihood
from ..engine.natural import compiled_solve
from ..engine.projected_data import EngineModel
from ..engine.projected_data import chunk_rows as default_chunk_rows
from ..engine.shared_graph import Compiled
from ..engine.statistics import Rows, compiled_marginals


def predict_marginals(
    model: EngineModel, X: Any, *, chunk_rows: int | None = None
) -> tuple[AnyNDArray, AnyNDArray]:
    """
    Mean and variance of f(x) under q, as `model.predict_f`, chunk by chunk.

    :param X: [N, D].
    :param chunk_rows: rows that are looked at together; None: as many as some 16 MB of features.
    :return: mean and variance, both [N, L].
    :raise ValueError: for X that is not finite or of another width than the training data, or
        `chunk_rows` below 1.
    """
    mean, variance = in_chunks(model, X, chunk_rows, lambda _, *f: f)
    return mean, variance


def predict_probabilities(
    model: EngineModel, X: Any, *, chunk_rows: int | None = None
) -> AnyNDArray:
    """
    The mean of y, as `model.predict_y`: for classification likelihoods, probabilities.

    Arguments and errors as in `predict_marginals`.

    :return: [N, P].
    """
    predict = compiled_mean.bind(model.likelihood)
    (p,) = in_chunks(model, X, chunk_rows, lambda *row: (predict(*row),))
    return p


def predict_log_density(
    model: EngineModel, data: tuple[Any, Any], *, chunk_rows: int | None = None
) -> AnyNDArray:
    """
    log p(y | x) of every row, as `model.predict_log_density`.

    Arguments and errors as in `predict_marginals`.

    :param data: X [N, D] and Y [N, P].
    :return: [N].
    """
    X, Y = data
    log_density = compiled_log_density.bind(model.likelihood)
    f = predict_marginals(model, X, chunk_rows=chunk_rows)
    return np.asarray(log_density(for_likelihood(X), *f, Y))


@Compiled
def compiled_log_density(likelihood: Likelihood, X: tf.Tensor, *f_and_Y: tf.Tensor) -> tf.Tensor:
    """
    :param f_and_Y: mean and variance of f, and labels.
    :return: log p(y | f), [N], by the likelihood's present link.
    """
    return likelihood.predict_log_density(X, *f_and_Y)


@Compiled
def compiled_mean(likelihood: Likelihood, X: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor) -> Any:
    """:return: mean of y, [N, P]."""
    return likelihood.predict_mean_and_var(X, Fmu, Fvar)[0]


def in_chunks(
    model: EngineModel, X: Any, chunk_rows: int | None, finish: Callable[..., Any]
) -> list[AnyNDArray]:
    """
    Arguments and errors as in `predict_marginals`.

    :param finish: a function of X, mean and variance of f, of the rows of a chunk.
    :return: what `finish` returns, column by column, the chunks put together.
    """
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"chunk_rows must be at least 1, got {chunk_rows}")
    X = check_inputs(X)
    check_width(model, X)
    chunk_rows = chunk_rows or default_chunk_rows(model)
    q = compiled_solve(*model.natural())
    project = model.projector()
    parts = []
    for start in range(0, len(X), chunk_rows):
        chunk = tf.convert_to_tensor(X[start : start + chunk_rows])
        rows = Rows(chunk, chunk, chunk, *project(chunk))  # labels and weights play no part
        parts.append(finish(chunk, *compiled_marginals(q.R, q.c, *rows)))
    return [np.concatenate(column) for column in zip(*parts)]
