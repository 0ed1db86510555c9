"""Doubt in a number per row that needs no draws and no entropy: margin and variance."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from ..engine.contracts import Model
from ..likelihoods.labels import check_one_label, with_both_classes
from .estimators import takes_estimators
from .marginals import predict_marginals, predict_probabilities


@takes_estimators
def margin(model: Model, X: Any, *, chunk_rows: int | None = None) -> AnyNDArray:
    """
    The largest probability less the second largest: *small* where a prediction is in doubt.

    Arguments and errors as in `gpflow_bsvm.prediction.variation_ratio`.

    :return: [N], from 0 to 1.
    """
    check_one_label(model.likelihood, model.num_features[0])
    p = with_both_classes(predict_probabilities(model, X, chunk_rows=chunk_rows))
    largest = np.partition(p, -2, axis=1)
    return np.asarray(largest[:, -1] - largest[:, -2])


@takes_estimators
def latent_variance(model: Model, X: Any, *, chunk_rows: int | None = None) -> AnyNDArray:
    """
    Variance of f(x) under q, the mean over latent functions: large where there are no data,
    whatever the classes there.

    Arguments and errors as in `gpflow_bsvm.prediction.predict_marginals`.

    :return: [N], in squared margins.
    """
    return np.asarray(predict_marginals(model, X, chunk_rows=chunk_rows)[1].mean(axis=1))
