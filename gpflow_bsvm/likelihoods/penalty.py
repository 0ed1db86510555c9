"""The slope of a hinge loss, and what it takes to learn it by evidence."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf
from gpflow import Parameter
from gpflow.utilities import positive


class Penalized:
    r"""
    A likelihood of the form exp(-penalty loss(y, f)), in which training may count a normaliser:

        kappa L(y | f),   1 / kappa = max_f sum_y L(y | f),

    the largest factor that leaves no more than 1 to all labels together (Gold & Sollich 2003,
    eq. 9; the rest is the probability of having no label at all). For a loss 1 + max_{t != y} f_t -
    f_y, cut off at 0, of C classes 1 / kappa = max(C exp(-penalty), 1 + (C - 1) exp(-2 penalty)):
    the sum is convex between the places where classes are tied, or separated by the margin. It
    changes neither sites nor predictions, only the evidence, by the same number for each datum.

    :ivar penalty: a parameter, not trainable by default.
    :ivar normalizer: whether kappa counts. Without it the evidence always prefers a smaller
        penalty; with it, a small one (`gpflow_bsvm.model_selection` chooses by held-out rows).
    """

    penalty: Parameter
    normalizer: bool

    def _set_penalty(self, penalty: float, normalizer: bool, num_classes: int) -> None:
        if not 0 < penalty < math.inf:
            raise ValueError(f"penalty must be positive and finite, got {penalty}")
        self.penalty = Parameter(penalty, transform=positive(), trainable=False)
        self.normalizer, self._num_labels = normalizer, num_classes

    def log_kappa(self) -> tf.Tensor:
        """:return: log of the normaliser of a datum, []; 0 if it does not count."""
        penalty = tf.convert_to_tensor(self.penalty)
        if not self.normalizer:
            return tf.zeros_like(penalty)
        apart = tf.math.log1p((self._num_labels - 1) * tf.exp(-2 * penalty))
        return -tf.maximum(math.log(self._num_labels) - penalty, apart)

    def check_learnable(self) -> None:
        """
        :raise ValueError: if the penalty is trainable without its normaliser.
        """
        parameter: Any = self.penalty
        if parameter.trainable and not self.normalizer:
            raise ValueError(
                "without its normaliser a trainable penalty runs to 0: make the likelihood with "
                "normalizer=True, or choose by gpflow_bsvm.model_selection"
            )
