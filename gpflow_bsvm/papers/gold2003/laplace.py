r"""Laplace's approximations of a support vector machine's evidence (Gold & Sollich 2003).

f is the machine's decision function, z_n = y_n f_n, l(z) = max(0, 1 - z) for linear slack and
max(0, 1 - z)^2 / 2 for quadratic slack, C the penalty, and the evidence (eq. 14)

    Q(Y | X) = kappa^N E_f exp(-C sum_n l(y_n f_n)),    f ~ N(0, K).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from ...checks import check_number
from .criterion import Machine, ModeCriterion, taken
from .slack import log_kappa


@dataclass(frozen=True)
class LaplaceEvidence(ModeCriterion):
    r"""
    Laplace's approximation of the log evidence per row (eq. 15, 16), for linear slack; greater is
    better:

        1/N log Q* - 1/(2N) log det(I + L_m K_m),    L_m = diag(2 pi (alpha (C - alpha) / C)^2),
        1/N log Q* = 1/N sum_n (-1/2 alpha_n z_n - C l(z_n)) + log kappa,

    with m the support vectors on the margin, where the loss's kink is integrated exactly. The
    factor kappa = 1 / (1 + exp(-2 C)) makes both labels sum to at most 1. Without a row on the
    margin the value is log Q*, with a warning.
    """

    greater_is_better = True
    slack = "linear"

    def _of(self, seen: Machine) -> tf.Tensor:
        C, n = seen.penalty, len(seen.y)
        if len(seen.rows) == 0:
            warnings.warn(
                "all support vectors are at the bound, none is on the margin: Laplace's evidence "
                "sees no curvature; use a larger penalty or variance",
                stacklevel=4,
            )
        log_q = _log_best(seen, C * tf.nn.relu(1 - seen.margins)) + log_kappa(self.slack, C)
        alpha = taken(seen.alpha, seen.rows)
        return log_q - _half_log_det(seen, 2 * np.pi * tf.square(alpha * (C - alpha) / C)) / n


@dataclass(frozen=True)
class QuadraticLaplaceEvidence(ModeCriterion):
    r"""
    Laplace's approximation of the log evidence per row (eq. 16, 17), of quadratic slack; greater is
    better:

        1/N log Q* - 1/(2N) log det(I + M_SV K_SV),    M = C diag(exp(-a / (1 - z))),

    where a smooths the step in the loss's second derivative; a = 0: no smoothing.

    :ivar smoothing: a.
    """

    greater_is_better = True
    slack = "quadratic"

    smoothing: float = 0.1

    def __post_init__(self) -> None:
        check_number(0, smoothing=self.smoothing)

    def _of(self, seen: Machine) -> tf.Tensor:
        C, n = seen.penalty, len(seen.y)
        loss = C * tf.square(tf.nn.relu(1 - seen.margins)) / 2
        # 1 - z = alpha / C
        M = C * tf.exp(-self.smoothing * C / taken(seen.alpha, seen.rows))
        return _log_best(seen, loss) + log_kappa(self.slack, C) - _half_log_det(seen, M) / n


def _log_best(seen: Machine, loss: tf.Tensor) -> tf.Tensor:
    """:return: 1/N log Q* without kappa, []."""
    return -tf.reduce_mean(seen.alpha * seen.margins / 2 + loss)


def _half_log_det(seen: Machine, curvature: tf.Tensor) -> tf.Tensor:
    """:return: 1/2 log det(I + curvature K) of `seen.rows`, []."""
    if len(seen.rows) == 0:
        return tf.zeros([], seen.gram.dtype)
    root = tf.sqrt(curvature)
    B = root[:, None] * seen.block() * root + tf.eye(len(seen.rows), dtype=root.dtype)
    return tf.reduce_sum(tf.math.log(tf.linalg.diag_part(tf.linalg.cholesky(B))))
