r"""The leave-one-out error and estimates of it (Gold & Sollich 2003, section 3.1).

f is the machine's decision function, z_n = y_n f_n, l(z) = max(0, 1 - z), K^C = K + I / C, C the
penalty, and H(a) = 1 for a >= 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ...checks import check_number
from .criterion import Machine, ModeCriterion, StepCriterion, taken
from .mode import Mode


class GACV(ModeCriterion):
    r"""
    Wahba's generalized approximate cross-validation (eq. 13), for linear slack; smaller is better:

        1/N sum_n l(z_n) + alpha_n K_nn F(z_n),    F = 2 for z < -1, 1 for -1 <= z <= 1, else 0.

    It bounds the mean leave-one-out hinge loss from above: by Jaakkola and Haussler's bound z_n
    decreases by at most alpha_n K_nn if row n is left out. The bound is tight if no other row is on
    the margin; otherwise such rows constrain f_n, as `HingeSpan` takes into account.
    """

    slack = "linear"

    def _of(self, seen: Machine) -> tf.Tensor:
        z = seen.margins
        # The factor for z > 1 is arbitrary, because alpha is 0 there.
        falls = seen.alpha * tf.linalg.diag_part(seen.gram) * tf.where(z < -1, 2.0, tf.ones_like(z))
        return tf.reduce_mean(tf.nn.relu(1 - z) + falls)


#: Jitter, relative to the largest entry of the Gram matrix, for equal rows on the margin.
_JITTER = 1e-10


class HingeSpan(ModeCriterion):
    r"""
    The mean leave-one-out hinge loss, by the span for linear slack; smaller is better:

        1/N sum_n l(z_n - alpha_n S_n^2),    S_n^2 = var(f_n | f of the other rows on the margin),

    a variance under the prior: 1 / [K_m^-1]_nn on the margin, K_nn - k_nm K_m^-1 k_mn beyond it,
    with m the rows on the margin. z_n - alpha_n S_n^2 is y_n f(x_n) without row n, exactly if no
    other row changes its set (Opper & Winther; Chapelle & Vapnik: eq. 11, 12 with a bound). `GACV`
    uses the unconditional variance K_nn as S_n^2. This criterion jumps if a row enters or leaves
    the margin.
    """

    slack = "linear"

    def left_out_margins(self, mode: Mode) -> AnyNDArray:
        """:return: the span's estimate of y_n f(x_n) without row n, [N]."""
        return np.asarray(_held_margins(self._seen(mode)))

    def _of(self, seen: Machine) -> tf.Tensor:
        return tf.reduce_mean(tf.nn.relu(1 - _held_margins(seen)))


def _held_margins(seen: Machine) -> tf.Tensor:
    """:return: z_n - alpha_n S_n^2, [N]."""
    return seen.margins - seen.alpha * _variances_given_margin(seen)


def _variances_given_margin(seen: Machine) -> tf.Tensor:
    """:return: S_n^2 of `HingeSpan`, [N]."""
    variances = tf.linalg.diag_part(seen.gram)
    if len(seen.rows) == 0:
        return variances
    eye = tf.eye(len(seen.rows), dtype=variances.dtype)
    L = tf.linalg.cholesky(seen.block() + _JITTER * tf.reduce_max(variances) * eye)
    A = tf.linalg.triangular_solve(L, taken(seen.gram, seen.rows))
    given = tf.nn.relu(variances - tf.reduce_sum(tf.square(A), axis=0))
    own = 1 / tf.reduce_sum(tf.square(tf.linalg.triangular_solve(L, eye)), axis=0)
    return tf.tensor_scatter_nd_update(given, seen.rows[:, None], own)


class Span(ModeCriterion):
    r"""
    The span estimate of the leave-one-out error (eq. 12; Chapelle & Vapnik), for quadratic slack;
    smaller is better:

        1/N sum_n H(alpha_n S_n^2 - 1),    S_n^2 = 1 / [(K^C_SV)^-1]_nn.

    1 - alpha_n S_n^2 is y_n f(x_n) without row n, exactly if the other support vectors stay the
    same. It is a step function: for optimizers use `SmoothedSpan`.
    """

    slack = "quadratic"
    has_gradient = False

    def left_out_margins(self, mode: Mode) -> AnyNDArray:
        """:return: the span's estimate of y_n f(x_n) without row n, [N]."""
        spans = _spans(self._seen(mode), 0.0).numpy()
        margins = mode.y * mode.latent
        margins[mode.support] = 1 - spans
        return margins

    def _of(self, seen: Machine) -> tf.Tensor:
        wrong = tf.cast(_spans(seen, 0.0) >= 1, tf.float64)
        return tf.reduce_sum(wrong) / len(seen.y)


@dataclass(frozen=True)
class SmoothedSpan(ModeCriterion):
    r"""
    The span estimate as a continuous function (section 3.1; quadratic slack); smaller is better:

        1/N sum_n 1 / (1 + exp(-c1 (alpha_n S_n^2 - 1) + c2)),
        S_n^2 = 1 / [(K^C_SV + eta A_SV^-1)^-1]_nn - eta / alpha_n,    A = diag(alpha),

    over all rows, with alpha_n S_n^2 = 0 unless row n is a support vector.

    :ivar c1: steepness of the step.
    :ivar c2: shift of the step.
    :ivar eta: weight of the smoothing: 0 gives the S^2 of `Span`, infinity K^C_nn (Jaakkola and
        Haussler).
    """

    slack = "quadratic"

    c1: float = 5.0
    c2: float = 0.0
    eta: float = 1.0

    def __post_init__(self) -> None:
        check_number(0, c1=self.c1, eta=self.eta)
        check_number(-math.inf, c2=self.c2)

    def _of(self, seen: Machine) -> tf.Tensor:
        others = tf.zeros(len(seen.y) - len(seen.rows), tf.float64)
        spans = tf.concat([_spans(seen, self.eta), others], 0)
        return tf.reduce_mean(tf.sigmoid(self.c1 * (spans - 1) - self.c2))


def _spans(seen: Machine, eta: float) -> tf.Tensor:
    """
    :return: alpha_n S_n^2 of support vectors, as 1 / G_nn - eta, G = (eta I + A^1/2 K^C A^1/2)^-1,
        which avoids division by small alpha.
    """
    root = tf.sqrt(taken(seen.alpha, seen.rows))
    eye = tf.eye(len(seen.rows), dtype=root.dtype)
    inner = root[:, None] * (seen.block() + eye / seen.penalty) * root
    G = tf.linalg.cholesky_solve(tf.linalg.cholesky(inner + eta * eye), eye)
    return 1 / tf.linalg.diag_part(G) - eta


class LeaveOneOut(StepCriterion):
    r"""
    The leave-one-out error (eq. 10), by a machine for every support vector; smaller is better: 1/N
    sum_n H(-y_n f(x_n)), f without row n.
    """

    def of_mode(self, mode: Mode) -> float:
        """:return: the error of a machine."""
        return float((left_out_margins(mode) <= 0).mean())


def left_out_margins(mode: Mode) -> AnyNDArray:
    """
    :return: y_n f(x_n) of the machine without row n, [N], unchanged if row n is not a support
        vector.
    """
    margins: AnyNDArray = mode.y * mode.latent
    for n in mode.support:
        part = mode.without(n)
        margins[n] = mode.y[n] * np.delete(mode.gram[n], n) @ (part.alpha * part.y)
    return margins
