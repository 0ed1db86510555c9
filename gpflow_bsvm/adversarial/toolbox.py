"""Targets as classifiers of the Adversarial Robustness Toolbox (ART), for all of its attacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from ..optional import require
from .attacks import Clip
from .targets import target_of


def art_classifier(target: Any, input_shape: tuple[int, ...], *, clip: Clip = (0.0, 1.0)) -> Any:
    """
    ART's own `TensorFlowV2Classifier` around a target: `predict` gives its probabilities,
    `loss_gradient` the gradient of -log p(y | x), `class_gradient` that of the probabilities, so
    that ART's attacks and defences run. ART itself rounds moved rows to single precision.

    :param target: as in `gpflow_bsvm.adversarial.fgsm`. It is read now: call again after a fit.
    :param input_shape: shape of a row, such as (D,).
    :param clip: limits of X; None: no limits.
    :raise ImportError: without the extra `adversarial`.
    """
    classification = require("art.estimators.classification", "adversarial")
    attacked = target_of(target)

    def predict(X: tf.Tensor, training: bool = False) -> tf.Tensor:
        return attacked.probabilities(X)

    def loss(hot: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
        own = tf.reduce_sum(tf.cast(hot, p.dtype) * p, axis=-1)
        return -tf.reduce_sum(tf.math.log(own + np.finfo(p.dtype.as_numpy_dtype).tiny))

    return classification.TensorFlowV2Classifier(
        model=predict,
        nb_classes=int(attacked.probabilities(tf.zeros([1, *input_shape])).shape[1]),
        input_shape=input_shape,
        loss_object=loss,
        clip_values=clip,
    )
