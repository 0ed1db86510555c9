"""What is attacked: a classifier that is made of TensorFlow; models, and the estimator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.base import AnyNDArray
from sklearn.utils.validation import check_is_fitted

from ..data.checks import check_inputs
from ..engine.contracts import check_width
from ..engine.natural import compiled_solve
from ..engine.statistics import compiled_marginals
from ..estimators import BSVMClassifier
from ..estimators.inputs import number, shift_and_scale
from ..likelihoods.labels import check_binary_labels, check_one_label, class_numbers
from ..prediction.marginals import compiled_log_density, compiled_mean


class Target(ABC):
    """
    A classifier that can be differentiated by x. Tensors in, tensors out, rows by rows.

    :ivar classes: the labels, [C], in the order of the probabilities; None: 0..C-1, whatever C is.
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
        return _log_of(self.probabilities(X), label)

    def check_inputs(self, X: Any) -> AnyNDArray:
        """
        :return: X [N, ...] as an array of floats.
        :raise ValueError: for anything else, NaN or infinity.
        """
        X = np.asarray(X)
        if X.ndim < 2 or len(X) == 0 or X.dtype.kind != "f":
            raise ValueError(
                f"X must be floats of shape [N, ...], N > 0, got {X.dtype} of shape {X.shape}; "
                "of pixels 0 to 255 give X / 255"
            )
        if not np.isfinite(X).all():
            raise ValueError("X holds NaN or infinity; drop or impute such rows first")
        return X

    def number(self, y: AnyNDArray, num_classes: int) -> AnyNDArray:
        """
        :param y: [N].
        :return: [N], the place of each label among the classes.
        :raise ValueError: for a label that is none of them.
        """
        return number(y, np.arange(num_classes) if self.classes is None else self.classes)


class ModelTarget(Target):
    """A model of this package, or GPflow's: anything with `likelihood` and `predict_f`."""

    def __init__(self, model: Any) -> None:
        """
        :raise ValueError: if rows have several binary labels.
        """
        self._model, self._likelihood = model, model.likelihood
        self._engine = hasattr(model, "projector") and hasattr(model, "natural")
        check_one_label(model.likelihood, model.num_latent_gps)
        if self._engine:
            self._project, self._q = model.projector(), compiled_solve(model.natural())

    def _latents(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and variance of f, [N, L] each."""
        if not self._engine:
            mean, variance = self._model.predict_f(X)
            return mean, variance
        f = compiled_marginals(self._q, self._project(X))
        return f.mean, f.variance

    def probabilities(self, X: tf.Tensor) -> tf.Tensor:
        """See `Target`: the mean of y, as `predict_y` has it."""
        return both(compiled_mean.bind(self._likelihood)(X, *self._latents(X)))

    def log_density(self, X: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
        """See `Target`: as `predict_log_density`."""
        Y = class_numbers(self._likelihood, tf.cast(label, X.dtype)[:, None])
        return compiled_log_density.bind(self._likelihood)(X, *self._latents(X), Y)

    def check_inputs(self, X: Any) -> AnyNDArray:
        """See `Target`: as for a prediction, and dense."""
        if scipy.sparse.issparse(X):
            raise ValueError("X is sparse, and an attack moves every column: give X.toarray()")
        X = np.asarray(check_inputs(X))
        if self._engine:
            check_width(self._model, X)
        return X

    def number(self, y: AnyNDArray, num_classes: int) -> AnyNDArray:
        """See `Target`; two classes may be -1 and 1."""
        if num_classes == 2 and (y == -1).any():
            check_binary_labels(y, minibatch=True)
            return np.asarray(y == 1, int)
        return super().number(y, num_classes)


class ClassifierTarget(Target):
    """A fitted `BSVMClassifier` in the units of its user: standardisation and labels inside."""

    def __init__(self, classifier: BSVMClassifier) -> None:
        """
        :raise sklearn.exceptions.NotFittedError: for one that was not fitted.
        """
        check_is_fitted(classifier)
        self.classes, self._width = classifier.classes_, classifier.n_features_in_
        self._model = ModelTarget(classifier.model_)
        units = shift_and_scale(classifier.scaler_, self._width)
        self._shift, self._scale = (tf.constant(part, gpflow.default_float()) for part in units)

    def _inside(self, X: tf.Tensor) -> tf.Tensor:
        return (tf.cast(X, self._shift.dtype) - self._shift) / self._scale

    def probabilities(self, X: tf.Tensor) -> tf.Tensor:
        """See `Target`."""
        return self._model.probabilities(self._inside(X))

    def log_density(self, X: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
        """See `Target`."""
        return self._model.log_density(self._inside(X), label)

    def check_inputs(self, X: Any) -> AnyNDArray:
        """See `Target`."""
        X = super().check_inputs(X)
        if X.shape[1:] != (self._width,):
            raise ValueError(f"X has shape {X.shape}, the classifier needs [N, {self._width}]")
        return X


def both(p: tf.Tensor) -> tf.Tensor:
    """:return: probabilities of all classes, also where there is one column, p(y = 1)."""
    return tf.concat([1 - p, p], axis=-1) if p.shape[-1] == 1 else p


def _log_of(p: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
    tiny = np.finfo(p.dtype.as_numpy_dtype).tiny
    return tf.math.log(tf.gather(p, label, batch_dims=1) + tiny)
