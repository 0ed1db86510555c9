"""A target as a classifier of the Adversarial Robustness Toolbox (ART), with all its attacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from ..checks import check_whole
from ..optional import require
from .attacks import Clip
from .ensembles import target_of


def art_classifier(
    target: Any,
    input_shape: tuple[int, ...],
    num_classes: int,
    *,
    clip: Clip = (0.0, 1.0),
    dtype: Any = np.float64,
) -> Any:
    """
    ART's own `TensorFlowV2Classifier` around a target: `predict` gives its probabilities,
    `loss_gradient` the gradient of -log p(y | x), `class_gradient` that of the probabilities, so
    that ART's attacks and defences run. ART itself rounds moved rows to single precision.

    :param target: as in `gpflow_bsvm.adversarial.fgsm`. It is read now: make it anew after a fit.
    :param input_shape: of a row, such as (D,).
    :param num_classes: C.
    :param clip: limits of X; None: there are none.
    :param dtype: in which the target takes X: for a model GPflow's default float.
    :raise ImportError: without the extra `adversarial`.
    :raise ValueError: for another number of classes than the target has.
    """
    check_whole(2, num_classes=num_classes)
    classification = require("art.estimators.classification", "adversarial")
    attacked = target_of(target)
    row = tf.zeros([1, *input_shape], dtype)
    found = int(attacked.probabilities(row).shape[1])
    if found != num_classes:
        raise ValueError(f"num_classes is {num_classes}, and the target has {found} classes")

    def predict(X: tf.Tensor, training: bool = False) -> tf.Tensor:
        return attacked.probabilities(tf.cast(X, dtype))

    def loss(hot: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
        own = tf.reduce_sum(tf.cast(hot, p.dtype) * p, axis=-1)
        return -tf.reduce_sum(tf.math.log(own + np.finfo(p.dtype.as_numpy_dtype).tiny))

    return classification.TensorFlowV2Classifier(
        model=predict,
        nb_classes=num_classes,
        input_shape=input_shape,
        loss_object=loss,
        clip_values=clip,
    )
