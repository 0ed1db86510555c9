r"""An attack by the gradient: a small move of x that makes its own label less probable.

    fast gradient sign    x' = clip(x + epsilon sign grad_x l(x, y))    (Goodfellow et al. 2015)

with l = -log p(y | x), the predictive log density of the whole model: through its latent functions,
its kernel, and a network in it. Other attacks are those of the Adversarial Robustness Toolbox, by
`art_classifier`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..checks import check_number
from ..estimators.labels import number
from ..likelihoods.labels import check_binary_labels
from ..optional import require
from .targets import Target, target_of

#: Limits of each column, or of all; None: there are none.
Clip = tuple[Any, Any] | None
#: Rows processed together: a gradient keeps all that was computed on the way to the loss.
CHUNK_ROWS = 256


def loss_gradient(target: Any, X: Any, y: Any) -> AnyNDArray:
    """
    The gradient of -log p(y | x) by x, row by row.

    :param target: a model, a classifier or a network, see `targets.target_of`.
    :param X: [N, D], floats; for a network [N, ...] in any shape that it takes.
    :param y: [N] or [N, 1], labels: 0..C-1, of a `BSVMClassifier` its own.
    :return: the gradient, as X.
    :raise ValueError: for bad X, labels that are unknown or of another length, and a gradient that
        is not finite.
    :raise TypeError: for a target that cannot be differentiated.
    """
    target = target_of(target)
    X = target.check_inputs(X)
    return _by_chunks(lambda X, label: _gradient(target, X, label), X, number_labels(target, X, y))


def fgsm(target: Any, X: Any, y: Any, epsilon: float, *, clip: Clip = (0.0, 1.0)) -> AnyNDArray:
    """
    The fast gradient sign method: one step of length epsilon in every column.

    Arguments and errors as in `loss_gradient`, and

    :param epsilon: length of the step, in units of X.
    :param clip: limits of X, numbers or [D] each; None: there are none.
    :return: the moved X. A row without a gradient stays where it is, with a warning.
    :raise ValueError: for a negative epsilon, or X outside of `clip`.
    """
    check_number(0, epsilon=epsilon)
    if not np.isfinite(epsilon):
        raise ValueError(f"epsilon must be finite, got {epsilon}")
    X = target_of(target).check_inputs(X)
    low, high = (np.asarray(limit, X.dtype) for limit in clip or (-np.inf, np.inf))
    if ((low > X) | (high < X)).any():
        raise ValueError(
            f"X must lie in clip, and is from {X.min()} to {X.max()}: give the limits of your "
            "columns, clip=(low, high), or clip=None"
        )
    step = np.asarray(epsilon, X.dtype) * np.sign(loss_gradient(target, X, y))
    return np.asarray(np.clip(X + step, low, high))


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


def class_probabilities(target: Any, X: Any) -> AnyNDArray:
    """
    Arguments and errors as in `loss_gradient`.

    :return: [N, C], of any target, so that models and networks can be compared.
    """
    target = target_of(target)
    return _by_chunks(target.probabilities, target.check_inputs(X))


def number_labels(target: Any, X: AnyNDArray, y: Any) -> AnyNDArray:
    """
    :return: [N], the column of each label in the target's probabilities; labels of the two classes
        0 and 1 may also be -1 and 1.
    :raise ValueError: for labels that are unknown or of another length.
    """
    target, y = target_of(target), np.asarray(y)
    if y.shape not in ((len(X),), (len(X), 1)):
        raise ValueError(
            f"y must be {len(X)} labels, one for each row of X, got shape {y.shape}; of one-hot "
            "rows give y.argmax(axis=1)"
        )
    y, classes = y.reshape(-1), target.classes
    if classes is None:
        classes = np.arange(target.probabilities(tf.constant(X[:1])).shape[1])
        if len(classes) == 2 and (y == -1).any():
            check_binary_labels(y, minibatch=True)
            return np.asarray(y == 1, int)
    return number(y, classes)


def _by_chunks(function: Callable[..., tf.Tensor], *columns: AnyNDArray) -> AnyNDArray:
    """:return: the results of the function for all rows, computed chunk by chunk."""
    starts = range(0, len(columns[0]), CHUNK_ROWS)
    chunks = ([tf.constant(c[start : start + CHUNK_ROWS]) for c in columns] for start in starts)
    return np.concatenate([function(*chunk).numpy() for chunk in chunks])


def _gradient(target: Target, X: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
    """:return: the gradient of -log p by X, finite."""
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(X)
        loss = -target.log_density(X, label)
    gradient = tape.gradient(loss, X)
    if gradient is None:
        raise TypeError(
            "the target has no gradient by X: somewhere in it a tensor became a NumPy array or an "
            "integer; it must be made of operations of TensorFlow alone"
        )
    largest = np.abs(gradient.numpy()).reshape(len(X), -1).max(axis=1)
    if not np.isfinite(largest).all():
        raise ValueError("the gradient of the log density overflows at a row: scale X")
    if still := int((largest == 0).sum()):
        warnings.warn(
            f"{still} of {len(X)} rows have the gradient 0 and stay where they are: the target is "
            "saturated there (its probability is 1 to rounding; of a network give the logits), or "
            "gives all classes the same probability (was it fitted?); neither is robustness",
            stacklevel=2,
        )
    return gradient
