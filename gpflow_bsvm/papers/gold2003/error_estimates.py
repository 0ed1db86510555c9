r"""The leave-one-out error, with estimates and bounds (Gold & Sollich 2003, section 3.1).

f is the machine's decision function, z_n = y_n f_n, l(z) = max(0, 1 - z), K^C = K + I / C, C the
penalty, and H(a) = 1 for a >= 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ...checks import check_number
from .criterion import MachineCriterion, StepCriterion, block_of, taken
from .mode import Dual, Mode

#: Jitter, relative to the largest entry of the Gram matrix, for equal rows on the margin.
_JITTER = 1e-10


@dataclass(frozen=True)
class GACV(MachineCriterion):
    r"""
    Wahba's generalized approximate cross-validation (eq. 13), for linear slack; smaller is better:

        1/N sum_n [l(z_n) + alpha_n K_nn F(z_n)],    F = 2 for z < -1, 1 for -1 <= z <= 1, else 0.

    It bounds the mean leave-one-out hinge loss from above, see `JaakkolaHaussler`. The bound is
    tight if no other row is on the margin; `HingeSpan` takes such rows into account.
    """

    def _of(self, mode: Mode) -> tf.Tensor:
        z = mode.margins
        # The factor for z > 1 is arbitrary, because alpha is 0 there.
        falls = mode.alpha * tf.linalg.diag_part(mode.gram) * tf.where(z < -1, 2.0, tf.ones_like(z))
        return tf.reduce_mean(tf.nn.relu(1 - z) + falls)


@dataclass(frozen=True)
class HingeSpan(MachineCriterion):
    r"""
    The mean leave-one-out hinge loss, estimated by the span, for linear slack; smaller is better:

        1/N sum_n l(z_n - alpha_n S_n^2),    S_n^2 = var(f_n | f of the other rows on the margin),

    a variance under the prior: 1 / [K_m^-1]_nn for rows on the margin, K_nn - k_nm K_m^-1 k_mn for
    others, where m are the rows on the margin. z_n - alpha_n S_n^2 estimates y_n f(x_n) without row
    n, and is exact if no other row changes its set (Opper & Winther; Chapelle & Vapnik: eq. 11, 12
    with a bound). `GACV` uses the unconditional variance K_nn as S_n^2. This criterion jumps when a
    row enters or leaves the margin.
    """

    def left_out_margins(self, mode: Mode) -> AnyNDArray:
        """:return: the span's estimate of y_n f(x_n) without row n, [N]."""
        self._check(mode)
        return np.asarray(_held_margins(mode))

    def _of(self, mode: Mode) -> tf.Tensor:
        return tf.reduce_mean(tf.nn.relu(1 - _held_margins(mode)))


def _held_margins(mode: Mode) -> tf.Tensor:
    """:return: z_n - alpha_n S_n^2 of `HingeSpan`, [N]."""
    variances = tf.linalg.diag_part(mode.gram)
    rows = mode.marginal
    if len(rows):
        eye = tf.eye(len(rows), dtype=variances.dtype)
        L = tf.linalg.cholesky(block_of(mode) + _JITTER * tf.reduce_max(variances) * eye)
        A = tf.linalg.triangular_solve(L, taken(mode.gram, rows))
        own = 1 / tf.reduce_sum(tf.square(tf.linalg.triangular_solve(L, eye)), axis=0)
        variances = tf.nn.relu(variances - tf.reduce_sum(tf.square(A), axis=0))
        variances = tf.tensor_scatter_nd_update(variances, rows[:, None], own)
    return mode.margins - mode.alpha * variances


class LeaveOneOut(StepCriterion):
    r"""
    The leave-one-out error (eq. 10), with a machine for every support vector; smaller is better:

        1/N sum_n H(-y_n f(x_n)),    f from the machine without row n.
    """

    def left_out_margins(self, mode: Mode) -> AnyNDArray:
        """
        :return: y_n f(x_n) from the machine without row n, [N]; unchanged if row n is not a support
            vector.
        """
        self._check(mode)
        margins = mode.margins
        for n in mode.support:
            part = mode.without(n)
            margins[n] = mode.y[n] * np.delete(mode.gram[n], n) @ (part.alpha * part.y)
        return margins

    def _of(self, mode: Mode) -> tf.Tensor:
        return (self.left_out_margins(mode) <= 0).mean()


@dataclass(frozen=True)
class Span(LeaveOneOut):
    r"""
    The span estimate of the leave-one-out error (eq. 12; Chapelle & Vapnik), for quadratic slack;
    smaller is better:

        1/N sum_n H(alpha_n S_n^2 - 1),    S_n^2 = 1 / [(K^C_SV)^-1]_nn.

    1 - alpha_n S_n^2 estimates y_n f(x_n) without row n, and is exact if the other support vectors
    stay the same. The criterion is a step function: with optimizers, use `SmoothedSpan`.
    """

    slack: str = field(default="quadratic", init=False)

    def left_out_margins(self, mode: Mode) -> AnyNDArray:
        """:return: the span's estimate of y_n f(x_n) without row n, [N]."""
        self._check(mode)
        margins = mode.margins
        margins[mode.support] = 1 - _spans(mode, 0.0)
        return margins


@dataclass(frozen=True)
class SmoothedSpan(MachineCriterion):
    r"""
    The span estimate as a continuous function (section 3.1; quadratic slack); smaller is better:

        1/N sum_n 1 / (1 + exp(-c1 (alpha_n S_n^2 - 1) + c2)),
        S_n^2 = 1 / [(K^C_SV + eta A_SV^-1)^-1]_nn - eta / alpha_n,    A = diag(alpha),

    over all rows, with alpha_n S_n^2 = 0 unless row n is a support vector.

    :ivar c1: steepness of the step.
    :ivar c2: shift of the step.
    :ivar eta: weight of the smoothing: with 0, S^2 is as in `Span`; with infinity, it is K^C_nn
        (Jaakkola and Haussler).
    """

    slack = "quadratic"

    c1: float = 5.0
    c2: float = 0.0
    eta: float = 1.0

    def __post_init__(self) -> None:
        check_number(0, c1=self.c1)
        if self.eta != math.inf:
            check_number(0, eta=self.eta)
        check_number(-math.inf, c2=self.c2)

    def _of(self, mode: Mode) -> tf.Tensor:
        others = tf.zeros(len(mode.y) - len(mode.marginal), tf.float64)
        spans = tf.concat([_spans(mode, self.eta), others], 0)
        return tf.reduce_mean(tf.sigmoid(self.c1 * (spans - 1) - self.c2))


def _spans(mode: Mode, eta: float) -> tf.Tensor:
    """
    :return: alpha_n S_n^2 of support vectors, as 1 / G_nn - eta, G = (eta I + A^1/2 K^C A^1/2)^-1,
        a form that avoids division by small alpha.
    """
    root = tf.sqrt(taken(mode.alpha, mode.marginal))
    eye = tf.eye(len(mode.marginal), dtype=root.dtype)
    inner = root[:, None] * (block_of(mode) + eye / mode.penalty) * root
    if math.isinf(eta):
        return tf.linalg.diag_part(inner)
    G = tf.linalg.cholesky_solve(tf.linalg.cholesky(inner + eta * eye), eye)
    return 1 / tf.linalg.diag_part(G) - eta


class SupportVectorCount(StepCriterion):
    """
    The training error plus the fraction of support vectors (below eq. 10); smaller is better.
    (Leaving out any other row changes nothing.)
    """

    def _of(self, mode: Mode) -> tf.Tensor:
        return (mode.margins <= 0).mean() + len(mode.support) / len(mode.y)


class JaakkolaHaussler(StepCriterion):
    r"""
    Jaakkola and Haussler's upper bound of the leave-one-out error (section 3.1); smaller is better:

        1/N sum_n H(alpha_n K_nn - z_n),

    because leaving out row n lowers z_n by at most alpha_n K_nn. `SmoothedSpan` with a large eta is
    its smooth form.
    """

    def _of(self, mode: Mode) -> tf.Tensor:
        return (mode.alpha * mode.gram.diagonal() >= mode.margins).mean()


@dataclass(frozen=True)
class RadiusMargin(MachineCriterion):
    r"""
    The radius-margin bound (eq. 9), for quadratic slack; smaller is better:

        R^2 / N sum_n alpha_n,

    where R is the radius of the smallest ball around all rows in the feature space of K^C. In this
    space the machine separates the rows by a margin of 1 / sqrt(sum_n alpha_n). Because the machine
    has no separate offset, only a ball about the origin, R^2 = max_n K^C_nn, guarantees a bound.

    :ivar about_origin: whether to use the ball about the origin.
    """

    slack = "quadratic"

    about_origin: bool = False

    def _of(self, mode: Mode) -> tf.Tensor:
        gram = mode.gram + tf.eye(len(mode.y), dtype=mode.gram.dtype) / mode.penalty
        diagonal = tf.linalg.diag_part(gram)
        if self.about_origin:
            square = tf.reduce_max(diagonal)
        else:  # constant weights in derivatives, as at a maximum
            b = tf.constant(enclosing_ball(gram.numpy()), gram.dtype)
            square = tf.reduce_sum(b * diagonal) - tf.reduce_sum(b * tf.linalg.matvec(gram, b))
        return square * tf.reduce_mean(mode.alpha)


def enclosing_ball(gram: AnyNDArray) -> AnyNDArray:
    r"""
    Find the center sum_n b_n phi(x_n) of the smallest ball around all rows in feature space:

        R^2 = max_b sum_n b_n K_nn - b^T K b = max_b b^T D b / 2,    b_n >= 0,    sum_n b_n = 1,

    with the squared distances D_nm = K_nn + K_mm - 2 K_nm. For c > R^2, b has the direction of
    argmax_(a >= 0) sum_n a_n - 1/2 a^T (c - D / 2) a, the dual problem of a support vector machine.

    :param gram: [N, N], symmetric and positive semidefinite.
    :return: b, [N], positive only for rows on the surface.
    """
    variances = gram.diagonal()
    distances = np.maximum(variances[:, None] + variances - 2 * gram, 0)
    largest = distances.max() or 1.0  # more than 2 R^2, so that sum_n a_n < 2 in its units
    a = Dual(1 - distances / (2 * largest), np.ones(len(gram)), 2.0).solve()
    return np.asarray(a / a.sum())
