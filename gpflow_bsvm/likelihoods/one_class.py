"""Novelty detection from rows of one class: the one-class support vector machine."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from .binary import BinaryLikelihood
from .hinge import HingeSum
from .labels import check_binary_labels, check_columns


class OneClass(HingeSum, BinaryLikelihood):
    r"""
    The one-class support vector machine (Schoelkopf et al. 2001): f should be 1 at all training
    rows, and its prior keeps it at 0 far from these rows,

        L(1 | f) = exp(-penalty max(0, 1 - f)).

    The mode is scikit-learn's `OneClassSVM` with the same kernel: f = (decision + rho) / rho, and
    penalty = 1 / rho in scikit-learn's scale. Its nu is the largest fraction of rows with f below
    1; a larger penalty corresponds to a smaller nu.

    f(x) is a score with its variance. P(y = 1 | x), the probability that x resembles the training
    rows, is

        Phi(scale Fmu + offset),    scale 1, offset -1:

    1/2 at the margin, Fmu = 1. It ignores Fvar: averaged over f as for two classes, it would
    approach 1/2 far from all rows, where Fvar is largest. It is a guess until
    `gpflow_bsvm.prediction.calibrate(model, (X, Y), held_out=True)` fits scale and offset to rows
    with and without outliers. It is then the probability that a row is not an outlier, if outliers
    are as frequent as in those rows. Outliers have label 0 or -1; other rows, including all
    training rows, have label 1.
    """

    neutral_link: ClassVar = {"scale": 1.0, "offset": -1.0}

    @inherit_check_shapes
    def probit_argument(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: z with p(y = 1) = Phi(z), [..., L]."""
        return self.scale * Fmu + self.offset

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """
        :param minibatch: whether outliers are allowed, or the rows are only a part of the data.
        :raise ValueError: for labels other than 1 in a fit, or other than 0, -1 and 1 elsewhere.
        """
        Y = np.asarray(Y)
        check_columns(Y, 1, "one-class labels must form a single column")
        if minibatch:
            check_binary_labels(Y, minibatch=True)
        elif not (Y == 1).all():
            raise ValueError(
                f"OneClass learns from rows of one class, all of label 1, got {Y[Y != 1][0]}: "
                "leave outliers out, and give them to gpflow_bsvm.prediction.calibrate"
            )
