"""Several targets as one, and how whatever is given becomes a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..estimators import BSVMClassifier
from .networks import NetworkTarget
from .targets import ClassifierTarget, ModelTarget, Target


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
        known = (m.classes for m in self._members if m.classes is not None)
        self.classes = next(known, None)

    def probabilities(self, X: tf.Tensor) -> tf.Tensor:
        """
        See `Target`.

        :raise ValueError: for members of different numbers of classes.
        """
        P = [member.probabilities(X) for member in self._members]
        if len(numbers := {int(p.shape[1]) for p in P}) > 1:
            raise ValueError(f"the members of an ensemble have {sorted(numbers)} classes")
        return tf.add_n([tf.cast(p, P[0].dtype) for p in P]) / len(P)

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
