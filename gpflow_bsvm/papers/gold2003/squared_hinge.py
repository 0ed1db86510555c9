r"""The squared hinge as a pseudo-likelihood, and losses with linear and quadratic slack.

With the margin z = y f (Gold & Sollich 2003, eq. 2, 6):

l(z) = max(0, 1 - z)    or    max(0, 1 - z)^2 / 2,    Q(y | f) = kappa(C) exp(-C l(y f)).
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import AnyNDArray, TensorType
from gpflow.likelihoods import Likelihood

from ...likelihoods import Hinge
from ...likelihoods.base import VARIANCE_FLOOR, Penalized, Sites
from ...likelihoods.classes import BinaryLikelihood, expected_ramp, normal_cdf
from ...likelihoods.labels import signs

SLACKS = ("linear", "quadratic")
#: Number of Newton steps for the normalizer, after which its error is below 1e-14.
_STEPS = 6


def log_kappa_of_squares(penalty: tf.Tensor) -> tf.Tensor:
    """
    With C = 2 penalty, the sum over labels is largest where f = tanh(C f). Newton steps find this f
    from the start f^2 = 1.5 (1 - 1 / C^2), which is too large, but exact in the limit C -> 1. The
    sum's derivative in f is 0 there, so its derivative in the penalty may treat f as fixed.

    :param penalty: [].
    :return: log kappa, 1 / kappa = max_f exp(-penalty (1 - f)^2) + exp(-penalty (1 + f)^2).
    """
    C = 2 * penalty
    f = tf.minimum(tf.sqrt(1.5 * tf.nn.relu(1 - 1 / tf.square(C))), 1)
    for _ in range(_STEPS):
        bent = tf.tanh(C * f)
        f -= tf.math.divide_no_nan(f - bent, 1 - C * (1 - tf.square(bent)))
    squares = tf.square(1 + tf.stop_gradient(f) * tf.constant([-1.0, 1.0], f.dtype))
    return -tf.reduce_logsumexp(-penalty * squares)


class SquaredHinge(Penalized, BinaryLikelihood):
    r"""
    The pseudo-likelihood of the support vector machine with quadratic slack (Gold & Sollich 2003,
    p = 2), whose mode is scikit-learn's `LinearSVC(loss="squared_hinge")`:

        L(y | f) = exp(-penalty max(0, 1 - y f)^2).

    The paper's loss is max(0, 1 - y f)^2 / 2: this penalty is half the paper's C (used in
    `gpflow_bsvm.papers.gold2003`), and equal to scikit-learn's C.

    With m = 1 - y Fmu, v = Fvar and z = m / sqrt(v), training maximizes the exact expectation,

        E log L = -penalty ((m^2 + v) Phi(z) + m sqrt(v) phi(z)).

    Its slope grows with the error, so wrong labels weigh more than with the hinge. See
    `BinaryLikelihood` for labels, link and normalization, and `Penalized` for all arguments.
    """

    bounds = ("exact",)
    slack = "quadratic"

    def __init__(self, penalty: float = 1.0, *, normalizer: bool = False) -> None:
        """Arguments are as in `Penalized`; only the default of `penalty` differs."""
        super().__init__(penalty, normalizer=normalizer)

    def _log_kappa(self, penalty: tf.Tensor) -> tf.Tensor:
        return log_kappa_of_squares(penalty)

    def losses(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: max(0, 1 - y f)^2, in the shape of F."""
        return tf.square(tf.nn.relu(1 - signs(Y, F) * F))

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        _, m, s = self._margins(Fmu, Fvar, Y)
        squares = tf.square(s) * normal_cdf(m / s) + m * expected_ramp(m, s)
        return tf.reduce_sum(self.log_kappa() - self.penalty * squares, axis=-1)

    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """:return: w = 2 penalty Phi(z), r = 2 y penalty (m Phi(z) + sqrt(v) phi(z)) + w Fmu."""
        y, m, s = self._margins(Fmu, Fvar, Y)
        w = 2 * self.penalty * normal_cdf(m / s)
        return Sites(w, 2 * self.penalty * y * expected_ramp(m, s) + w * Fmu)

    def _margins(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> tuple[tf.Tensor, ...]:
        """:return: labels in {-1, +1}, mean and deviation of 1 - y f."""
        y = signs(Y, Fmu)
        return y, 1 - y * Fmu, tf.sqrt(tf.maximum(Fvar, VARIANCE_FLOOR))


def losses(slack: str, z: AnyNDArray | tf.Tensor) -> tf.Tensor:
    """:return: l(z), in the shape of z."""
    lacking = tf.nn.relu(1 - z)
    return lacking if slack == "linear" else tf.square(lacking) / 2


def slopes(slack: str, z: AnyNDArray) -> AnyNDArray:
    """:return: dl / dz <= 0, in the shape of z."""
    return np.where(z < 1, -1.0, 0.0) if slack == "linear" else -np.maximum(1 - z, 0)


def likelihood_of(slack: str, penalty: float) -> Likelihood:
    """:return: exp(-C l(y f)), without kappa, as a likelihood of this package."""
    return Hinge(penalty) if slack == "linear" else SquaredHinge(penalty / 2)


def log_kappa(slack: str, penalty: float | tf.Tensor) -> tf.Tensor:
    """
    :param penalty: C, [].
    :return: log kappa, 1 / kappa = max_z exp(-C l(z)) + exp(-C l(-z)); with this normalizer, the
        likelihoods of both labels sum to at most 1 (eq. 6).
    """
    penalty = tf.convert_to_tensor(penalty, tf.float64)
    if slack == "linear":
        return -tf.math.log1p(tf.exp(-2 * penalty))
    return log_kappa_of_squares(penalty / 2)
