"""Labels and prediction that all multi-class likelihoods of the package share."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from .base import Classification
from .labels import CLASS_COLUMN, check_all_classes, check_columns, check_latents
from .penalized import Penalized


class CategoricalLikelihood(Classification, Penalized):
    """
    Base of the multi-class likelihoods: one latent function per class, `num_latent_gps=C`, and
    labels 0..C-1 in one column, of any dtype.

    Training maximises a pseudo-likelihood that is not normalised, as with `BinaryLikelihood`;
    prediction is a proper categorical distribution, which a subclass states by
    `class_probabilities`, of g f instead of f.

    :ivar num_classes: C.
    :ivar scale: g of the link (an inverse temperature), see `Classification`.
    """

    scale: Any

    def __init__(
        self, num_classes: int, penalty: float = 2.0, bound: str = "exact", **kwargs: Any
    ) -> None:
        """
        :param num_classes: C, at least 2.
        :param penalty: slope of the loss, positive.
        :param bound: one of `bounds`.
        :param kwargs: `normalizer`, see `Penalized`.
        :raise ValueError: for other values.
        """
        if not isinstance(num_classes, (int, np.integer)) or num_classes < 2:
            raise ValueError(f"num_classes must be at least 2, and an integer, got {num_classes!r}")
        shape: dict[str, Any] = {"input_dim": None, "observation_dim": None}
        super().__init__(penalty, bound, latent_dim=num_classes, **shape, **kwargs)
        self.num_classes = num_classes

    def class_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """
        :param Fmu: [..., C], and Fvar: [..., C], not negative.
        :return: P(y = c), [..., C]; rows sum to 1.
        """
        raise NotImplementedError

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """
        :param minibatch: whether classes may be absent.
        :raise ValueError: unless Y is one column of integers 0..C-1 with a row of every class.
        """
        check_all_classes(Y, self.num_classes, minibatch=minibatch)

    def latents(self, F: TensorType) -> tf.Tensor:
        """
        :return: [..., L], with L known while a graph is built.
        :raise ValueError: for another number of latent functions.
        """
        F = tf.convert_to_tensor(F)
        check_latents(self, F)
        return tf.ensure_shape(F, [*F.shape[:-1], self.latent_dim])

    def one_hot(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """
        :param F: [..., L], what the labels belong to.
        :return: [..., C], of F's dtype; NaN for a label that is none: never a silent wrong answer.
        :raise ValueError: unless Y is one column, and see `latents`.
        """
        like, column = self.latents(F), tf.convert_to_tensor(Y)
        check_columns(column, 1, *CLASS_COLUMN)
        column = tf.cast(column, like.dtype)
        classes = tf.range(self.num_classes, dtype=like.dtype)
        hot = tf.cast(tf.equal(column, classes), like.dtype)
        known = tf.reduce_any(tf.equal(column, classes), axis=-1, keepdims=True)
        return tf.where(known, hot, np.nan * tf.ones_like(hot))

    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(y = c) at q(f) = N(Fmu, Fvar), [..., C]: `class_probabilities` of g f."""
        Fmu, Fvar = self.scale * self.latents(Fmu), tf.square(self.scale) * self.latents(Fvar)
        return self.class_probabilities(Fmu, Fvar)

    @inherit_check_shapes
    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        p = self.probabilities(Fmu, Fvar)
        tiny = np.finfo(p.dtype.as_numpy_dtype).tiny
        return tf.math.log(tf.reduce_sum(self.one_hot(Y, Fmu) * p, axis=-1) + tiny)
