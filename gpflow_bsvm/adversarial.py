"""Adversarial inputs: models as classifiers for the Adversarial Robustness Toolbox (ART)."""

from __future__ import annotations

from . import quiet  # isort: skip  # noqa: F401 - imports GPflow before others do

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from sklearn.utils.validation import check_is_fitted

from .engine.contracts import check_floats, check_width
from .estimators import BSVMClassifier
from .estimators.scaling import model_input
from .likelihoods.base import probabilities as probabilities_of
from .likelihoods.labels import check_one_label, with_both_classes
from .optional import require

__all__ = ["art_classifier"]

#: A function of X [N, D]: p(y = c | x), [N, C].
Probabilities = Callable[[tf.Tensor], tf.Tensor]


def art_classifier(
    target: Any, input_shape: tuple[int, ...], *, clip: tuple[Any, Any] | None = None
) -> Any:
    """
    Wrap a model as ART's `TensorFlowV2Classifier`, for ART's attacks and defenses. `predict`
    returns probabilities, `class_gradient` their gradient, and `loss_gradient` the gradient of -log
    p(y | x) through the whole model (latent functions, kernel and its network, standardization).
    ART itself rounds perturbed rows to single precision.

    :param target: a model of this package or GPflow, or a fitted `BSVMClassifier`, which takes
        unscaled rows. Call this function again after another fit.
    :param input_shape: shape of a row, such as (D,).
    :param clip: lower and upper limits of X, as numbers or arrays [D], such as (0, 1) for images.
        ART clips perturbed rows to them. None means no limits.
    :raise ImportError: if the extra `adversarial` is missing.
    :raise TypeError: for any other target.
    :raise ValueError: if rows have several binary labels, or a wrong number of columns.
    :raise sklearn.exceptions.NotFittedError: for an unfitted classifier.
    """
    classification = require("art.estimators.classification", "adversarial")
    row = tf.zeros([1, *input_shape])
    if isinstance(target, BSVMClassifier):
        probabilities = _of_classifier(target, row)
    elif hasattr(target, "predict_y"):
        probabilities = _of_model(target, row)
    else:
        raise TypeError(
            "the target must be a model or a fitted BSVMClassifier (for networks use ART's "
            f"classifiers), got {type(target).__name__}"
        )

    def predict(X: tf.Tensor, training: bool = False) -> tf.Tensor:
        if X.shape[1:] != row.shape[1:]:  # a single column would be broadcast
            raise ValueError(f"rows must be of shape {input_shape}, got X of shape {X.shape}")
        return probabilities(X)

    return classification.TensorFlowV2Classifier(
        model=predict,
        nb_classes=int(probabilities(row).shape[1]),
        input_shape=input_shape,
        loss_object=_loss,
        clip_values=clip,
    )


def _loss(hot: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
    """:return: the sum over rows of -log p(y | x); `hot` is one-hot, [N, C]."""
    own = tf.reduce_sum(tf.cast(hot, p.dtype) * p, axis=-1)
    return -tf.reduce_sum(tf.math.log(own + np.finfo(p.dtype.as_numpy_dtype).tiny))


def _of_classifier(classifier: BSVMClassifier, row: tf.Tensor) -> Probabilities:
    check_is_fitted(classifier)

    def padded(X: tf.Tensor) -> tf.Tensor:
        # With `impute` indicator columns are added; here no value is missing.
        marks = classifier._num_columns - classifier.n_features_in_
        return tf.pad(tf.cast(X, gpflow.default_float()), [[0, 0], [0, marks]])

    of_model = _of_model(classifier.model_, padded(row))  # which checks the number of columns
    scaler, columns = classifier.scaler_, classifier._columns
    return lambda X: tf.gather(of_model(model_input(scaler, padded(X))), columns, axis=-1)


def _of_model(model: Any, row: tf.Tensor) -> Probabilities:
    check_one_label(model.likelihood, model.num_latent_gps)
    if hasattr(model, "prior_factor"):
        check_floats(model)
        check_width(model, row)

    def probabilities(X: tf.Tensor) -> tf.Tensor:
        X = tf.cast(X, gpflow.default_float())
        mean, variance = model.predict_f(X)
        return with_both_classes(probabilities_of(model.likelihood, X, mean, variance))

    return probabilities
