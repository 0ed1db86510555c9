"""What is attacked: a classifier in TensorFlow, such as a model, the estimator or a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from sklearn.utils.validation import check_is_fitted

from ..engine.contracts import check_width
from ..estimators import BSVMClassifier
from ..estimators.inputs import shift_and_scale
from ..likelihoods.labels import check_one_label, with_both_classes

#: Rows of probabilities may miss 1 by this: single precision, and many classes.
_ROW_SUM = 1e-4


class Target(ABC):
    """
    A classifier that can be differentiated by x: a row of tensors out for each row of tensors in.

    :ivar classes: the labels, [C], in the order of the probabilities; None: 0..C-1 for any C.
    """

    classes: AnyNDArray | None = None

    @abstractmethod
    def probabilities(self, X: tf.Tensor) -> tf.Tensor:
        """:return: p(y = c | x), [N, C]."""

    def log_density(self, X: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
        """
        :param label: [N], in 0..C-1.
        :return: log p(y | x), [N].
        """
        p = self.probabilities(X)
        tiny = np.finfo(p.dtype.as_numpy_dtype).tiny
        return tf.math.log(tf.gather(p, label, batch_dims=1) + tiny)

    def check_inputs(self, X: Any) -> AnyNDArray:
        """
        :return: X [N, ...] as an array of floats.
        :raise ValueError: for anything else, NaN or infinity.
        """
        X = np.asarray(X)
        if X.ndim < 2 or len(X) == 0 or X.dtype.kind != "f":
            raise ValueError(
                f"X must be dense floats of shape [N, ...], N > 0, got {X.dtype} of shape "
                f"{X.shape}; of pixels 0 to 255 give X / 255"
            )
        if not np.isfinite(X).all():
            raise ValueError("X holds NaN or infinity; drop or impute such rows first")
        return X


class ModelTarget(Target):
    """A model of this package, or GPflow's; or a fitted `BSVMClassifier`, in its user's units."""

    def __init__(self, what: Any) -> None:
        """
        :raise ValueError: if rows have several binary labels.
        :raise sklearn.exceptions.NotFittedError: for an unfitted classifier.
        """
        self._model, self._units = what, (0.0, 1.0)
        if isinstance(what, BSVMClassifier):
            check_is_fitted(what)
            self._model, self.classes = what.model_, what.classes_
            self._units = shift_and_scale(what.scaler_, what.n_features_in_)
        check_one_label(self._model.likelihood, self._model.num_latent_gps)

    def probabilities(self, X: tf.Tensor) -> tf.Tensor:
        """See `Target`: the mean of y, as in `predict_y`."""
        shift, scale = self._units
        X = (tf.cast(X, gpflow.default_float()) - shift) / scale
        return with_both_classes(self._model.predict_y(X)[0])

    def check_inputs(self, X: Any) -> AnyNDArray:
        """See `Target`: of the model's columns; a single one would be scaled to all of them."""
        X = super().check_inputs(X)
        if hasattr(self._model, "prior_factor"):
            check_width(self._model, X)
        return X


class NetworkTarget(Target):
    """A function of a tensor X [N, ...], such as a Keras network: probabilities or logits."""

    def __init__(self, network: Callable[[tf.Tensor], tf.Tensor], *, logits: bool = False) -> None:
        """
        :param network: X [N, ...] -> [N, C]; or [N, 1], of p(y = 1) of two classes.
        :param logits: whether probabilities are the softmax (of one column: the logistic function)
            of what it returns.
        """
        self._network, self._logits = network, logits

    def probabilities(self, X: tf.Tensor) -> tf.Tensor:
        """
        See `Target`.

        :raise TypeError: if the network returns no tensor.
        :raise ValueError: for another shape, or rows that do not sum to 1.
        """
        if self._logits:
            return tf.nn.softmax(self._outputs(X))
        p = with_both_classes(self._outputs(X))
        if tf.executing_eagerly() and not np.allclose(p.numpy().sum(axis=1), 1, atol=_ROW_SUM):
            raise ValueError(
                "the network's rows are no probabilities, their sums are not 1; of logits give "
                "NetworkTarget(network, logits=True)"
            )
        return p

    def log_density(self, X: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
        """See `Target`."""
        if not self._logits:
            return super().log_density(X, label)
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(label, self._outputs(X))

    def _outputs(self, X: tf.Tensor) -> tf.Tensor:
        outputs = self._network(X)
        if not tf.is_tensor(outputs):
            raise TypeError(
                f"the network returns {type(outputs).__name__}, which has no gradient by X: give "
                "a function that makes a tensor of a tensor, such as a Keras network itself"
            )
        if len(outputs.shape) != 2:
            raise ValueError(f"the network must return [N, C], got shape {outputs.shape}")
        single = self._logits and outputs.shape[1] == 1
        return tf.concat([tf.zeros_like(outputs), outputs], 1) if single else outputs


def target_of(what: Any) -> Target:
    """
    :param what: a model of this package or of GPflow; a fitted `BSVMClassifier`; a Keras network
        or another function of a tensor that gives probabilities (of logits:
        `NetworkTarget(function, logits=True)`); or a `Target`.
    :raise TypeError: for anything else.
    """
    if isinstance(what, Target):
        return what
    if isinstance(what, BSVMClassifier) or hasattr(what, "predict_f"):
        return ModelTarget(what)
    if callable(what):
        return NetworkTarget(what)
    raise TypeError(
        "a target must be a model, a fitted BSVMClassifier, or a Keras network or another function "
        f"of a tensor; got {type(what).__name__}"
    )
