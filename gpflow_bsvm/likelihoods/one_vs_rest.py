"""The paper's competitor: a binary Bayesian SVM for every class against all others."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import TensorType

from .binary import normal_log_cdf
from .categorical import CategoricalLikelihood
from .hinge import HingeSum


class OneVsRest(CategoricalLikelihood, HingeSum):
    r"""
    C binary hinges, one per class against all others,

        L(y | f) = prod_c exp(-penalty max(0, 1 - t_c f_c)),   t_c = +1 if c = y, else -1,

    the comparison of Wistuba & Rawat (2018), section 4. Hinges are those of `Hinge`; the C
    models share features and are fitted together, each as if alone. Prediction divides the binary
    probabilities by their sum:

        P(y = c) = p_c / sum_j p_j,   p_c = Phi(Fmu_c / sqrt(1 + Fvar_c)).

    The machines know nothing of each other, so that there is no p(y | f) of which this would be
    the mean over f: `conditional_mean`, and with it means over draws and the mutual information,
    divide before they average. The two differ by up to .08.

    See `CategoricalLikelihood` for labels and what is normalised, `Penalized` for `penalty` and
    `normalizer`, of which kappa is that of `Hinge` for each class.
    """

    has_normalizer = True

    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: t, as F."""
        return 2 * self.one_hot(Y, F) - 1

    def class_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """
        :param Fmu: [..., C], and Fvar: [..., C]; below 0, by rounding, it counts as 0.
        :return: binary probabilities divided by their sum, [..., C]; taken by their logarithms,
            so that a row far below all hinges still has its ranking.
        """
        log_p = normal_log_cdf(Fmu / tf.sqrt(1 + tf.maximum(Fvar, 0)))
        return tf.nn.softmax(log_p, axis=-1)
