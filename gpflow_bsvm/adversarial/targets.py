"""What is attacked: anything that makes probabilities of x by operations of TensorFlow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from sklearn.utils.validation import check_is_fitted

from ..data.checks import check_inputs
from ..engine.contracts import check_width
from ..engine.natural import compiled_solve
from ..engine.statistics import compiled_marginals
from ..estimators import BSVMClassifier
from ..estimators.inputs import number, shift_and_scale
from ..likelihoods.hooks import Hook, has_hook
from ..likelihoods.labels import check_binary_labels, check_one_label
from ..prediction.marginals import compiled_log_density, compiled_mean

#: Rows of probabilities may miss 1 by this: single precision, and many classes.
_ROW_SUM = 1e-4


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
        return _both(compiled_mean.bind(self._likelihood)(X, *self._latents(X)))

    def log_density(self, X: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
        """See `Target`: as `predict_log_density`."""
        # Some likelihoods of GPflow look labels up by number, those of this package compare them.
        ours = has_hook(self._likelihood, Hook.CHECK_LABELS)
        Y = tf.cast(label, X.dtype if ours else tf.int64)[:, None]
        return compiled_log_density.bind(self._likelihood)(X, *self._latents(X), Y)

    def check_inputs(self, X: Any) -> AnyNDArray:
        """See `Target`: as for a prediction."""
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
        return tf.nn.softmax(self._outputs(X)) if self._logits else self._outputs(X)

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
                "a function that makes a tensor of a tensor, such as a Keras network itself "
                "(not its `predict`)"
            )
        if len(outputs.shape) != 2:
            raise ValueError(f"the network must return [N, C], got shape {outputs.shape}")
        if self._logits:
            single = outputs.shape[1] == 1
            return tf.concat([tf.zeros_like(outputs), outputs], 1) if single else outputs
        return _check_rows(_both(outputs))


class Ensemble(Target):
    """Several classifiers of the same classes: the mean of their probabilities."""

    def __init__(self, members: Sequence[Any]) -> None:
        """
        :param members: whatever `target_of` takes.
        :raise ValueError: for none, or different classes.
        """
        self._members = [target_of(member) for member in members]
        if not self._members:
            raise ValueError("an ensemble needs a member, got none")
        labels = [np.asarray(m.classes).tolist() for m in self._members if m.classes is not None]
        if any(other != labels[0] for other in labels):
            raise ValueError(f"the members of an ensemble have different classes: {labels}")
        self.classes = self._members[0].classes

    def probabilities(self, X: tf.Tensor) -> tf.Tensor:
        """See `Target`."""
        return tf.add_n([m.probabilities(X) for m in self._members]) / len(self._members)

    def check_inputs(self, X: Any) -> AnyNDArray:
        """See `Target`."""
        for member in self._members:
            X = member.check_inputs(X)
        return np.asarray(X)


def target_of(what: Any) -> Target:
    """
    :param what: a model of this package or of GPflow; a fitted `BSVMClassifier`; a Keras network
        or another function of a tensor that gives probabilities (of logits:
        `NetworkTarget(function, logits=True)`); a list of these, an ensemble; or a `Target`.
    :raise TypeError: for anything else.
    """
    if isinstance(what, Target):
        return what
    if isinstance(what, BSVMClassifier):
        return ClassifierTarget(what)
    if hasattr(what, "likelihood") and hasattr(what, "predict_f"):
        return ModelTarget(what)
    if isinstance(what, (list, tuple)):
        return Ensemble(what)
    if callable(what):
        return NetworkTarget(what)
    raise TypeError(
        "a target must be a model, a fitted BSVMClassifier, a Keras network or another function "
        f"of a tensor, or a list of these; got {type(what).__name__}"
    )


def _both(p: tf.Tensor) -> tf.Tensor:
    """:return: probabilities of all classes, also where there is one column, p(y = 1)."""
    return tf.concat([1 - p, p], axis=-1) if p.shape[-1] == 1 else p


def _log_of(p: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
    tiny = np.finfo(p.dtype.as_numpy_dtype).tiny
    return tf.math.log(tf.gather(p, label, batch_dims=1) + tiny)


def _check_rows(p: tf.Tensor) -> tf.Tensor:
    """:raise ValueError: (outside of a graph) for rows that are no probabilities."""
    if tf.executing_eagerly() and len(p):
        off = np.abs(p.numpy().sum(axis=1) - 1).max()
        if not (off <= _ROW_SUM and p.numpy().min() >= -_ROW_SUM):  # NaN fails too
            raise ValueError(
                "the network's rows are no probabilities (one misses the sum 1 by "
                f"{off:.3g}); of logits give NetworkTarget(network, logits=True)"
            )
    return p
