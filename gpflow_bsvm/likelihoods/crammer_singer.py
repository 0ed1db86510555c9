"""The multi-class Bayesian SVM: the hinge loss of Crammer and Singer as a pseudo-likelihood."""

from __future__ import annotations

from typing import ClassVar

import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType

from .base import VARIANCE_FLOOR
from .categorical import CategoricalLikelihood
from .hooks import Sites
from .maximum import maximum
from .penalized import Penalized


class CrammerSinger(CategoricalLikelihood, Penalized):
    r"""
    One latent function per class, and the loss of the largest rival (Wistuba & Rawat 2018, eq. 4):

        L(y | f) = exp(-penalty max(0, 1 + max_{t != y} f_t - f_y)).

    With f_1..f_C independent under q, training maximizes the expectation itself,

        E log L = -penalty (E max_j (f_j - [j = y]) - Fmu_y + 1),

    by one-dimensional quadrature: the loss is the maximum over all classes of f_j, the label's
    lowered by 1, minus f of the label, plus 1. The augmented bound, and the paper's own objective,
    which is not a bound, are in `gpflow_bsvm.papers.wistuba2018`.

    Prediction is P(y = c) = P(argmax_j f_j + e_j = c) with e_j ~ N(0, 1/2), which for two classes
    is the probit link of the binary models. The class of largest probability is not always that of
    the largest mean, which is the paper's decision rule: an uncertain mean counts less. See
    `CategoricalLikelihood` for labels and normalization, `Penalized` for `penalty` and
    `normalizer`.
    """

    bounds: ClassVar[tuple[str, ...]] = ("exact",)
    shift_invariant = True

    @property
    def num_labels(self) -> int:
        """:return: C."""
        return self.num_classes

    @inherit_check_shapes
    def losses(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: max(0, 1 + max_{t != y} f_t - f_y) = max_j (f_j - [j = y]) - f_y + 1."""
        hot = self.one_hot(Y, F)
        return tf.reduce_max(F - hot, axis=-1, keepdims=True) - of_label(hot, F) + 1

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        hot, Fmu, Fvar = self._row(Fmu, Fvar, Y)
        loss = maximum(Fmu - hot, Fvar).mean - of_label(hot, Fmu)[..., 0] + 1
        return self.log_kappa() - self.penalty * loss

    @inherit_check_shapes
    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """
        :return: the Gaussian sites: with h_j = f_j - [j = y], w_c = penalty d^2 E max_j h_j /
            d mu_c^2, r_c = penalty ([c = y] - P(argmax_j h_j = c)) + w_c Fmu_c.
        """
        hot, Fmu, Fvar = self._row(Fmu, Fvar, Y)
        largest = maximum(Fmu - hot, Fvar)
        w = self.penalty * largest.curvature
        return Sites(w, self.penalty * (hot - largest.probability) + w * Fmu)

    def _row(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> tuple[tf.Tensor, ...]:
        """:return: [j = y], Fmu and a positive Fvar, [..., C]."""
        hot = self.one_hot(Y, Fmu)
        Fmu, Fvar = (tf.convert_to_tensor(part, hot.dtype) for part in (Fmu, Fvar))
        return hot, Fmu, tf.maximum(Fvar, VARIANCE_FLOOR)

    @inherit_check_shapes
    def class_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """:return: P(argmax_j f_j + e_j = c), e_j ~ N(0, 1/2), of an Fvar that is not negative."""
        return maximum(Fmu, Fvar + 0.5).probability


@check_shapes("hot: [batch..., C]", "values: [batch..., C]", "return: [batch..., 1]")
def of_label(hot: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """:return: the entry of the label, [..., 1]."""
    return tf.reduce_sum(hot * values, axis=-1, keepdims=True)
