"""Marginals of f for any number of rows, in chunks of bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..checks import check_inputs, check_width
from .solve import compiled_solve
from .statistics import Rows, compiled_marginals
from .view import CHUNK_ENTRIES, EngineModel


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
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"chunk_rows must be at least 1, got {chunk_rows}")
    X = check_inputs(X)
    check_width(model, X)
    num_latents, num_inducing = model.num_features
    chunk_rows = chunk_rows or max(1, CHUNK_ENTRIES // (num_latents * num_inducing))
    q = compiled_solve(*model.natural())
    project = model.projector()
    parts = []
    for start in range(0, len(X), chunk_rows):
        chunk = tf.convert_to_tensor(X[start : start + chunk_rows])
        rows = Rows(chunk, chunk, chunk, *project(chunk))  # labels and weights play no part
        parts.append(compiled_marginals(q.R, q.c, *rows))
    mean, variance = (np.concatenate(column) for column in zip(*parts))
    return mean, variance
