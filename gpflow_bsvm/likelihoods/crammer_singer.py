"""The multi-class Bayesian SVM: the hinge loss of Crammer and Singer as a pseudo-likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.base import MeanAndVariance, TensorType
from gpflow.likelihoods import Likelihood
from gpflow.utilities import positive

from .base import VARIANCE_FLOOR, Sites, sites_by_autodiff
from .maximum import maximum, moments_of_maximum

BOUNDS = ("exact", "augmented", "published")


class CrammerSinger(Likelihood):
    r"""
    One latent function per class, and the loss of the largest rival (Wistuba & Rawat 2018, eq. 4):

        L(y | f) = exp(-penalty max(0, 1 + max_{t != y} f_t - f_y)).

    With f_1..f_C independent under q and R = max_{t != y} f_t, a = penalty / 2, training maximises

        bound="exact":      E log L = -penalty (E max_j (f_j - [j = y]) - Fmu_y + 1),
            one-dimensional quadrature: a true ELBO. (max(0, 1 + R - f_y) is the maximum over all
            classes of f_j, the label's lowered by 1, less that of the label.)
        bound="augmented":  E log L >= -a m - a sqrt(m^2 + v),  m = 1 + E R - Fmu_y,
            v = Var R + Fvar_y: the binary papers' bound with the moments of the rival. Looser, and
            not always concave: a precision that comes out negative is set to 0.
        bound="published":  the same with R replaced by f_t, t the rival of largest mean. This is
            what the paper maximises, and it is *not* a lower bound, as max f_t >= f_t; nor does
            its coordinate ascent always ascend, because a step can make another class the rival.
            Here for comparison with the paper only.

    The pseudo-likelihood is not normalised. Prediction is a proper categorical distribution,
    P(y = c) = P(argmax_j f_j + e_j = c) with e_j ~ N(0, 1/2), which for two classes is the probit
    link of the binary models.

    Labels are integers 0..C-1 in one column, of any dtype. Use with `num_latent_gps=C`.

    :ivar penalty: see `Hinge`.
    """

    def __init__(
        self, num_classes: int, penalty: float = 2.0, bound: str = "exact", **kwargs: Any
    ) -> None:
        """
        :param num_classes: C, at least 2.
        :param penalty: slope of the loss, positive.
        :param bound: "exact", "augmented" or "published".
        :raise ValueError: for other values.
        """
        if num_classes < 2:
            raise ValueError(f"num_classes must be at least 2, got {num_classes}")
        if bound not in BOUNDS:
            raise ValueError(f"bound must be one of {BOUNDS}, got {bound!r}")
        if not 0 < penalty < np.inf:
            raise ValueError(f"penalty must be positive and finite, got {penalty}")
        super().__init__(input_dim=None, latent_dim=num_classes, observation_dim=None, **kwargs)
        self.num_classes = num_classes
        self.bound = bound
        self.penalty = Parameter(penalty, transform=positive(), trainable=False)

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """
        :param minibatch: whether classes may be absent.
        :raise ValueError: unless Y is one column of integers 0..C-1 with a row of every class.
        """
        labels = np.asarray(Y)
        if labels.ndim != 2 or labels.shape[1] != 1:
            raise ValueError(
                f"class labels must be one column of integers, got shape {labels.shape}; for "
                "one-hot rows use Y.argmax(axis=1)[:, None]"
            )
        found, last = np.unique(labels), self.num_classes - 1
        wrong = found[(found != np.round(found)) | (found < 0) | (found > last)]
        if len(wrong):
            raise ValueError(f"class labels must be integers in 0..{last}, got {wrong[0]}")
        absent = np.setdiff1d(np.arange(self.num_classes), found)
        if len(absent) and not minibatch:
            raise ValueError(
                f"no row of class {absent[0]}, but num_classes is {self.num_classes}; labels must "
                "be 0..C-1 without gaps"
            )

    def _one_hot(self, Y: TensorType, like: tf.Tensor) -> tf.Tensor:
        """:return: [..., C]; a label that is none gives NaN, never a silent wrong answer."""
        column = tf.cast(tf.convert_to_tensor(Y), like.dtype)
        classes = tf.range(self.num_classes, dtype=like.dtype)
        hot = tf.cast(tf.equal(column, classes), like.dtype)
        known = tf.reduce_any(tf.equal(column, classes), axis=-1, keepdims=True)
        return tf.where(known, hot, np.nan * tf.ones_like(hot))

    @inherit_check_shapes
    def _log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        F = tf.convert_to_tensor(F)
        hot = self._one_hot(Y, F)
        return self.penalty * (tf.reduce_sum(hot * F, -1) - 1 - tf.reduce_max(F - hot, -1))

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        Fmu, Fvar = tf.convert_to_tensor(Fmu), tf.maximum(Fvar, VARIANCE_FLOOR)
        hot = self._one_hot(Y, Fmu)
        label = tf.reduce_sum(hot * Fmu, axis=-1)
        if self.bound == "exact":
            return self.penalty * (label - 1 - maximum(Fmu - hot, Fvar).mean)
        rival, variance = self._rival(Fmu, Fvar, hot)
        m = 1 + rival - label
        v = variance + tf.reduce_sum(hot * Fvar, axis=-1)
        return -self.penalty / 2 * (m + tf.sqrt(tf.square(m) + v))

    def _rival(
        self, Fmu: tf.Tensor, Fvar: tf.Tensor, hot: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and variance of what the bound takes for max_{t != y} f_t, both [...]."""
        if self.bound == "augmented":
            # The label takes no part where its mean is below the reach of all others.
            low = tf.reduce_min(Fmu - 20 * tf.sqrt(Fvar), axis=-1, keepdims=True)
            smallest = tf.reduce_min(Fvar, axis=-1, keepdims=True)
            apart = tf.where(hot > 0, low - 20 * tf.sqrt(smallest), Fmu)
            return moments_of_maximum(apart, tf.where(hot > 0, smallest, Fvar))
        rival = tf.argmax(tf.where(hot > 0, -np.inf * tf.ones_like(Fmu), Fmu), axis=-1)
        chosen = tf.one_hot(rival, self.num_classes, dtype=Fmu.dtype)
        return tf.reduce_sum(chosen * Fmu, axis=-1), tf.reduce_sum(chosen * Fvar, axis=-1)

    @check_shapes(
        "Fmu: [batch..., C]",
        "Fvar: [batch..., C]",
        "return[0]: [batch..., C]",
        "return[1]: [batch..., C]",
    )
    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """
        The Gaussian sites (`gpflow_bsvm.likelihoods.sites`) of all classes. For the exact bound,
        with h_j = f_j - [j = y],

            w_c = penalty d^2 E max_j h_j / d mu_c^2,
            r_c = penalty ([c = y] - P(argmax_j h_j = c)) + w_c Fmu_c,

        for the others by automatic differentiation of the bound.
        """
        if self.bound != "exact":
            return sites_by_autodiff(self, X, Fmu, Fvar, Y)
        Fmu = tf.convert_to_tensor(Fmu)
        hot = self._one_hot(Y, Fmu)
        largest = maximum(Fmu - hot, tf.maximum(Fvar, VARIANCE_FLOOR))
        w = self.penalty * largest.curvature
        return w, self.penalty * (hot - largest.probability) + w * Fmu

    @inherit_check_shapes
    def _conditional_mean(self, X: TensorType, F: TensorType) -> tf.Tensor:
        F = tf.convert_to_tensor(F)
        return maximum(F, 0.5 * tf.ones_like(F)).probability

    @inherit_check_shapes
    def _conditional_variance(self, X: TensorType, F: TensorType) -> tf.Tensor:
        p = self._conditional_mean(X, F)
        return p - tf.square(p)

    @inherit_check_shapes
    def _predict_mean_and_var(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        p = maximum(tf.convert_to_tensor(Fmu), Fvar + 0.5).probability
        return p, p - tf.square(p)

    @inherit_check_shapes
    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        p, _ = self._predict_mean_and_var(X, Fmu, Fvar)
        hot = self._one_hot(Y, p)
        tiny = np.finfo(p.dtype.as_numpy_dtype).tiny
        return tf.math.log(tf.reduce_sum(hot * p, axis=-1) + tiny)
