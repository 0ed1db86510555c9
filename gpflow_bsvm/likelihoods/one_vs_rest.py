"""The paper's competitor: a binary Bayesian SVM for every class against all others."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType

from .base import Sites
from .binary import normal_log_cdf
from .categorical import CategoricalLikelihood
from .hinge import Hinge


class OneVsRest(CategoricalLikelihood):
    r"""
    C binary hinges, one per class against all others,

        L(y | f) = prod_c exp(-penalty max(0, 1 - t_c f_c)),   t_c = +1 if c = y, else -1,

    the comparison of Wistuba & Rawat (2018), section 4. Expectations and sites are those of
    `Hinge`; the C models share features and are fitted together, each as if alone. Prediction
    divides the binary probabilities by their sum:

        P(y = c) = p_c / sum_j p_j,   p_c = Phi(Fmu_c / sqrt(1 + Fvar_c)).

    See `CategoricalLikelihood` for labels and what is normalised.

    :ivar hinge: the binary likelihood, with the penalty.
    """

    def __init__(
        self,
        num_classes: int,
        penalty: float = 2.0,
        bound: str = "exact",
        *,
        normalizer: bool = False,
        **kwargs: Any,
    ) -> None:
        """
        :param num_classes: C, at least 2.
        :param penalty: slope of the loss, positive.
        :param bound: "exact" or "augmented", see `Hinge`.
        :param normalizer: whether training counts kappa, see `Hinge`.
        :raise ValueError: for other values.
        """
        super().__init__(num_classes, **kwargs)
        self.hinge = Hinge(penalty, bound, normalizer=normalizer)

    @property
    def has_point_sites(self) -> bool:
        """:return: as `Hinge`."""
        return self.hinge.has_point_sites

    @inherit_check_shapes
    def _log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        F = self.latents(F)
        return self.hinge.log_prob(X, F, self.one_hot(Y, F))

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        Fmu = self.latents(Fmu)
        return self.hinge.variational_expectations(X, Fmu, Fvar, self.one_hot(Y, Fmu))

    @check_shapes(
        "Fmu: [batch..., C]",
        "Fvar: [batch..., C]",
        "return[0]: [batch..., C]",
        "return[1]: [batch..., C]",
    )
    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """The Gaussian sites (`gpflow_bsvm.likelihoods.sites`) of `Hinge`, class by class."""
        Fmu = self.latents(Fmu)
        return self.hinge.sites(X, Fmu, Fvar, self.one_hot(Y, Fmu))

    def draw_sites(self, F: tf.Tensor, Y: tf.Tensor, seed: tf.Tensor) -> Sites:
        """As `Hinge.draw_sites`, class by class."""
        return self.hinge.draw_sites(F, self.one_hot(Y, F), seed)

    def check_learnable(self) -> None:
        """
        :raise ValueError: if the penalty is trainable without its normaliser.
        """
        self.hinge.check_learnable()

    def class_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """
        :param Fmu: [..., C], and Fvar: [..., C], not negative.
        :return: binary probabilities divided by their sum, [..., C]; taken by their logarithms,
            so that a row far below all hinges still has its ranking.
        """
        log_p = normal_log_cdf(Fmu / tf.sqrt(1 + Fvar))
        return tf.nn.softmax(log_p, axis=-1)
