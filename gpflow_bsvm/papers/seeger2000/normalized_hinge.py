"""The hinge divided by its sum over both labels: a proper likelihood."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow import Parameter
from gpflow.base import TensorType
from gpflow.utilities import positive
from scipy.special import roots_legendre

from ...likelihoods.base import VARIANCE_FLOOR, check_penalty
from ...likelihoods.classes import BinaryLikelihood, expected_ramp, normal_pdf
from ...likelihoods.labels import signs

#: Number of standard deviations after which normal tails are cut off; nodes per smooth part.
_REACH = 8.5
_NODES = 40
_POINTS, _WEIGHTS = roots_legendre(_NODES)
#: exp(-_FAR) is negligible relative to 1.
_FAR = 37.0


class NormalizedHinge(BinaryLikelihood):
    r"""
    The hinge, normalized over y for every f (Seeger 2000; Sollich 2002):

        p(y | f) = L(y | f) / (L(+1 | f) + L(-1 | f)),    L(y | f) = exp(-penalty max(0, 1 - y f)).

    Between the margins this is logistic, 1 / (1 + exp(-2 penalty y f)); beyond them, its log odds
    have half this slope. It is therefore not log-concave: a site with a negative precision gets
    precision 0 (`gpflow_bsvm.likelihoods.sites`). With h(f) = log(1 + exp(-penalty min(2 |f|, 1 +
    |f|))) the sum over labels is

        log(L(+1 | f) + L(-1 | f)) = -penalty max(0, 1 - |f|) + h(f).

    Training maximizes the exact expectation. Its piecewise linear terms have a closed form; the
    expectation of h is computed by Gauss-Legendre quadrature between the kinks of h.

    Prediction uses the link of `BinaryLikelihood`, so models with this hinge and with `Hinge`
    differ only in training. The evidence can determine the penalty without another normalizer.

    :ivar penalty: a parameter, not trainable by default.
    """

    def __init__(self, penalty: float = 2.0) -> None:
        """
        :param penalty: slope of the loss, positive.
        :raise ValueError: for a penalty that is not positive and finite.
        """
        super().__init__()
        self.penalty = Parameter(check_penalty(penalty), transform=positive(), trainable=False)

    @inherit_check_shapes
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        both = -self.penalty * tf.nn.relu(1 - tf.abs(F)) + self._rest(F)
        return -self.penalty * tf.nn.relu(1 - signs(Y, F) * F) - both

    def _rest(self, F: tf.Tensor) -> tf.Tensor:
        """:return: h."""
        size = tf.abs(F)
        return tf.nn.softplus(-self.penalty * tf.minimum(2 * size, 1 + size))

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        s = tf.sqrt(tf.maximum(Fvar, VARIANCE_FLOOR))
        left, middle, right = (expected_ramp(Fmu + kink, s) for kink in (1, 0, -1))
        triangle = left - 2 * middle + right  # E max(0, 1 - |f|)
        gain = self.penalty * (triangle - expected_ramp(1 - signs(Y, Fmu) * Fmu, s))
        return tf.reduce_sum(gain - self._expected_rest(Fmu, s), axis=-1)

    def _expected_rest(self, Fmu: tf.Tensor, s: tf.Tensor) -> tf.Tensor:
        """:return: E h(f), f ~ N(Fmu, s^2), from the four intervals where h is smooth and not 0."""
        near = tf.minimum(_FAR / (2 * self.penalty), 1.0)
        far = 1 + _FAR / self.penalty
        total = tf.zeros_like(Fmu)
        for low, high in ((-far, -1.0), (-near, 0.0), (0.0, near), (1.0, far)):
            start = tf.clip_by_value((low - Fmu) / s, -_REACH, _REACH)
            half = (tf.clip_by_value((high - Fmu) / s, -_REACH, _REACH) - start) / 2
            u = start[..., None] + half[..., None] * (_POINTS + 1)
            values = normal_pdf(u) * self._rest(Fmu[..., None] + s[..., None] * u)
            total += half * tf.reduce_sum(_WEIGHTS * values, axis=-1)
        return total
