r"""The evidence of kernel and penalty, approximated (Gold & Sollich 2003).

f is the machine's decision function, z_n = y_n f_n, l(z) = max(0, 1 - z) for linear slack and
max(0, 1 - z)^2 / 2 for quadratic slack, C the penalty, and the evidence (eq. 14)

    Q(Y | X) = kappa^N E_f exp(-C sum_n l(y_n f_n)),    f ~ N(0, K).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from ...checks import check_choice, check_number
from .criterion import MachineCriterion, block_of, taken
from .mode import Mode
from .squared_hinge import SLACKS, log_kappa, losses


@dataclass(frozen=True)
class LaplaceEvidence(MachineCriterion):
    r"""
    Laplace's approximation of the log evidence per row (eq. 15 to 17); greater is better:

        1/N log Q* - 1/(2N) log det(I + L K_m),
        1/N log Q* = 1/N sum_n (-1/2 alpha_n z_n - C l(z_n)) + log kappa,

    where m are the support vectors that are not bounded, L is their diagonal matrix of curvatures,
    and kappa is the factor that makes both labels sum to at most 1 (eq. 6):

        linear slack:       L = 2 pi (alpha (C - alpha) / C)^2
        quadratic slack:    L = C exp(-a / (1 - z))

    For linear slack the kink of the loss is integrated exactly; if no row is on the margin, the
    value is log Q*, with a warning. For quadratic slack the number a smooths the step in the loss's
    second derivative.

    :ivar slack: "linear" or "quadratic".
    :ivar smoothing: a; 0: no smoothing.
    """

    greater_is_better = True
    looks_at_penalty = True

    slack: str = "linear"
    smoothing: float = 0.1

    def __post_init__(self) -> None:
        check_choice(SLACKS, slack=self.slack)
        check_number(0, smoothing=self.smoothing)

    def _of(self, mode: Mode) -> tf.Tensor:
        C = mode.penalty
        z = mode.margins
        log_q = -tf.reduce_mean(mode.alpha * z / 2 + C * losses(self.slack, z))
        root = tf.sqrt(self._curvatures(taken(mode.alpha, mode.marginal), C))
        B = root[:, None] * block_of(mode) * root + tf.eye(len(mode.marginal), dtype=root.dtype)
        half_log_det = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(tf.linalg.cholesky(B))))
        return log_q + log_kappa(self.slack, C) - half_log_det / len(mode.y)

    def _curvatures(self, alpha: tf.Tensor, C: tf.Tensor) -> tf.Tensor:
        """:return: L, for alpha of m."""
        if self.slack == "quadratic":
            return C * tf.exp(-self.smoothing * C / alpha)  # 1 - z = alpha / C
        if len(alpha) == 0:
            warnings.warn(
                "all support vectors are at the bound and none is on the margin, so that Laplace's "
                "evidence has no curvature; use a larger penalty or variance",
                stacklevel=5,
            )
        return 2 * np.pi * tf.square(alpha * (C - alpha) / C)
