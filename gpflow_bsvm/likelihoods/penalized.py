"""Likelihoods with a penalty: their normalizer, and the parameters that can be learned."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.base import TensorType
from gpflow.utilities import positive

from ..checks import check_choice
from .hooks import Hooks


def check_penalty(penalty: float, name: str = "penalty") -> float:
    """
    :return: the value of an option of this name.
    :raise ValueError: unless it is a positive, finite number.
    """
    value = np.asarray(penalty)
    if value.ndim or value.dtype.kind not in "iuf" or not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, a number, got {penalty!r}")
    return float(value)


class Penalized(Hooks):
    r"""
    A likelihood L = exp(-penalty loss(y, f)), optionally multiplied by its normalizer kappa in
    training:

        kappa L(y | f),   1 / kappa = max_f sum_y L(y | f),

    the largest factor for which the sum over labels is at most 1 (Gold & Sollich 2003, eq. 6; the
    remainder is the probability of no label). For C classes with loss max(0, 1 + max_{t != y} f_t
    - f_y), 1 / kappa = max(C exp(-penalty), 1 + (C - 1) exp(-2 penalty)), because the sum is convex
    between these two cases: all classes tied, and one separated by the margin. Kappa does not
    change sites or predictions, only the evidence, by a constant per datum.

    If the loss is a sum of max(0, b_k), it has local variables, for any bound: see
    `gpflow_bsvm.prediction.local_variables`.

    :ivar penalty: slope of the loss, a parameter, not trainable by default.
    :ivar bound: the training objective, one of `bounds`.
    :cvar has_normalizer: whether kappa is known.
    :ivar normalizer: whether to include kappa. Without kappa the evidence always prefers a smaller
        penalty; with kappa, a large penalty for clean rows and a small one for noisy rows.
    """

    bounds: ClassVar[tuple[str, ...]] = ("exact", "augmented")
    has_normalizer: ClassVar[bool] = True
    sites_are_slopes: Any = True
    #: The number of labels that share a loss.
    num_labels: Any = 2

    def __init__(
        self,
        penalty: float = 2.0,
        bound: str = "exact",
        *,
        normalizer: bool = False,
        **shape: int | None,
    ) -> None:
        """
        Options become attributes; `shape` holds arguments of `gpflow.likelihoods.Likelihood`.

        :raise ValueError: for other values.
        """
        super().__init__(**shape)
        check_choice(self.bounds, bound=bound)
        if normalizer and not self.has_normalizer:
            raise ValueError(f"{type(self).__name__} has no normaliser: leave normalizer out")
        self.penalty = Parameter(check_penalty(penalty), transform=positive(), trainable=False)
        self.bound = bound
        self.normalizer = normalizer

    @check_shapes("return: []")
    def log_kappa(self) -> tf.Tensor:
        """:return: the log of the normalizer of a loss, []; 0 if `normalizer` is False."""
        penalty = tf.convert_to_tensor(self.penalty)
        return self._log_kappa(penalty) if self.normalizer else tf.zeros_like(penalty)

    def _log_kappa(self, penalty: tf.Tensor) -> tf.Tensor:
        apart = tf.math.log1p((self.num_labels - 1) * tf.exp(-2 * penalty))
        return -tf.maximum(math.log(self.num_labels) - penalty, apart)

    def check_learnable(self) -> None:
        """:raise ValueError: if the penalty is trainable without its normalizer."""
        parameter: Any = self.penalty
        if parameter.trainable and not self.normalizer:
            how = "make the likelihood with normalizer=True, or " if self.has_normalizer else ""
            raise ValueError(
                f"without its normaliser, a trainable penalty goes to 0: {how}choose by "
                "gpflow_bsvm.model_selection"
            )

    @check_shapes("F: [broadcast batch..., L]", "return: [batch..., G]")
    def losses(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: [..., G], the losses of each row, without the penalty."""
        raise NotImplementedError

    @inherit_check_shapes
    def _log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return tf.reduce_sum(self._scalar_log_prob(X, F, Y), axis=-1)

    @check_shapes("F: [broadcast batch..., L]", "return: [batch..., G]")
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return self.log_kappa() - self.penalty * self.losses(Y, F)
