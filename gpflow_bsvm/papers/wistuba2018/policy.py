"""The paper's baseline policy of active learning."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from scipy.special import softmax
from scipy.stats import entropy

from ...engine.contracts import Model
from ...prediction.marginals import map_f


def softmax_entropy(model: Model, X: AnyNDArray) -> AnyNDArray:
    """
    Entropy of the softmax of f's means, ignoring variances: the point-estimate policy of Wistuba &
    Rawat (2018), section 4.3.1. For a single latent function, the softmax of (0, f).

    :return: [N], in nats.
    :raise ValueError: for ordered classes, which share their functions.
    """
    if hasattr(model.likelihood, "thresholds"):
        raise ValueError(
            "softmax_entropy needs a function for each class, and ordered classes share theirs: "
            "use gpflow_bsvm.prediction.predictive_entropy"
        )
    decisions = getattr(model.likelihood, "decisions", None)

    def mean_of(X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
        return decisions(mean, variance)[0] if decisions else mean

    mean = map_f(model, X, mean_of).numpy()
    if mean.shape[1] == 1:
        mean = np.hstack([np.zeros_like(mean), mean])
    return np.asarray(entropy(softmax(mean, axis=1), axis=1))
