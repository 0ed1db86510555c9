"""Labels and predictions of all multi-class likelihoods; and one-vs-rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType

from ..notices import warn
from .base import Classification
from .binary import normal_log_cdf
from .hinge import HingeSum
from .labels import as_column, check_class_column, check_class_labels, check_latents


class CategoricalLikelihood(Classification):
    """
    Base of the multi-class likelihoods: labels 0..C-1 in one column, of any dtype, and by default
    one latent function per class, `num_latent_gps=C`.

    Training maximizes a pseudo-likelihood that is not normalized, as with `BinaryLikelihood`;
    prediction uses a proper categorical distribution. A subclass defines this distribution by
    `class_probabilities`, called with g f instead of f, or by `probabilities`.

    :ivar num_classes: C.
    :ivar scale: g of the link (an inverse temperature), see `Classification`.
    """

    scale: Any

    def __init__(
        self,
        num_classes: int,
        penalty: float = 2.0,
        bound: str = "exact",
        *,
        normalizer: bool = False,
        invlink: Any = None,
        about: Any = None,
    ) -> None:
        """
        :param num_classes: C, at least 2.
        :param penalty: slope of the loss, positive.
        :param bound: one of `bounds`.
        :param normalizer: see `Penalized`.
        :param invlink: ignored with a warning; taken, so that it can replace GPflow's `MultiClass`.
        :param about: keyword arguments of the other base class.
        :raise ValueError: for other values.
        """
        if not isinstance(num_classes, (int, np.integer)) or num_classes < 2:
            raise ValueError(f"num_classes must be at least 2, and an integer, got {num_classes!r}")
        if invlink is not None:
            warn(f"{type(self).__name__} has a link of its own, and ignores invlink={invlink!r}")
        shape = {"input_dim": None, "observation_dim": None, "latent_dim": num_classes}
        super().__init__(penalty, bound, normalizer=normalizer, **(shape | (about or {})))
        self.num_classes = num_classes

    @check_shapes("Fmu: [batch..., C]", "Fvar: [batch..., C]", "return: [batch..., C]")
    def class_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """:return: P(y = c), rows sum to 1; Fvar is not negative."""
        raise NotImplementedError

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """
        :param minibatch: whether classes may be absent.
        :raise ValueError: unless Y is one column of integers 0..C-1 that contains every class.
        """
        check_class_column(np.asarray(Y))
        found = check_class_labels(Y, self.num_classes)
        absent = np.setdiff1d(np.arange(self.num_classes), found)
        if len(absent) and not minibatch:
            raise ValueError(
                f"no row of class {absent[0]}, but num_classes is {self.num_classes}; labels must "
                "be 0..C-1 without gaps"
            )

    @check_shapes("F: [batch..., L]", "return: [batch..., L]")
    def latents(self, F: TensorType) -> tf.Tensor:
        """
        :return: F, with a static number of latent functions L.
        :raise ValueError: for another number of latent functions.
        """
        F = tf.convert_to_tensor(F)
        check_latents(self, F)
        return tf.ensure_shape(F, [*F.shape[:-1], self.latent_dim])

    @check_shapes("F: [broadcast batch..., L]", "return: [broadcast batch..., C]")
    def one_hot(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """
        :param F: [..., L] or [N, L], latent functions of the same rows.
        :param Y: [..., 1], or [N] if F is [N, L].
        :return: one-hot rows of F's dtype; NaN for an invalid label, to make it noticed.
        :raise ValueError: for Y of the wrong shape, as in `latents`, and outside of graphs for an
            invalid label.
        """
        like = self.latents(F)
        column = as_column(self, tf.convert_to_tensor(Y), like)
        check_class_column(column)
        if tf.executing_eagerly():
            check_class_labels(column, self.num_classes)
        column = tf.cast(column, like.dtype)
        classes = tf.range(self.num_classes, dtype=like.dtype)
        hot = tf.cast(tf.equal(column, classes), like.dtype)
        known = tf.reduce_any(tf.equal(column, classes), axis=-1, keepdims=True)
        return tf.where(known, hot, np.nan * tf.ones_like(hot))

    @check_shapes("F: [broadcast batch..., L]", "return: [broadcast batch..., G]")
    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: signs for sums of hinges [..., C]: +1 for the class, -1 for all others."""
        return 2 * self.one_hot(Y, F) - 1

    @inherit_check_shapes
    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(y = c) at q(f) = N(Fmu, Fvar): `class_probabilities` of g f."""
        Fmu = self.scale * self.latents(Fmu)
        Fvar = tf.square(self.scale) * self.latents(Fvar)
        return self.class_probabilities(Fmu, Fvar)

    @inherit_check_shapes
    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        p = self.probabilities(Fmu, Fvar)
        tiny = np.finfo(p.dtype.as_numpy_dtype).tiny
        return tf.math.log(tf.reduce_sum(self.one_hot(Y, Fmu) * p, axis=-1) + tiny)


class OneVsRest(CategoricalLikelihood, HingeSum):
    r"""
    C binary hinges, one per class against all others,

        L(y | f) = prod_c exp(-penalty max(0, 1 - t_c f_c)),   t_c = +1 if c = y, else -1,

    the baseline of Wistuba & Rawat (2018), section 4, with the hinges of `Hinge`. The C models
    share features. They are fitted together, but do not affect each other. Prediction divides the
    binary probabilities by their sum:

        P(y = c) = p_c / sum_j p_j,   p_c = Phi(Fmu_c / sqrt(1 + Fvar_c)).

    This is not the mean over f of any p(y | f): `conditional_mean`, means over draws and the mutual
    information normalize before averaging. The results differ by up to .08.

    See `CategoricalLikelihood` for labels and normalization, `Penalized` for `penalty` and
    `normalizer`; kappa is a product over classes, each as for `Hinge`.
    """

    has_normalizer = True

    @inherit_check_shapes
    def class_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """
        :return: binary probabilities divided by their sum, computed from logarithms to rank even
            tiny probabilities. A negative Fvar (rounding) counts as 0.
        """
        log_p = normal_log_cdf(Fmu / tf.sqrt(1 + tf.maximum(Fvar, 0)))
        return tf.nn.softmax(log_p, axis=-1)
