r"""The evidence of kernel and penalty, approximated (Gold & Sollich 2003).

f is the machine's decision function, z_n = y_n f_n, l(z) = max(0, 1 - z) for linear slack and
max(0, 1 - z)^2 / 2 for quadratic slack, C the penalty, and the evidence (eq. 14)

    Q(Y | X) = kappa^N E_f exp(-C sum_n l(y_n f_n)),    f ~ N(0, K).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood

from ...checks import check_number
from ...inference import fit
from ...likelihoods import Hinge
from ...likelihoods.penalized import check_penalty
from ...models import BatchBSVM
from .criterion import Criterion, ModeCriterion, block_of, taken
from .mode import Mode
from .slack import log_kappa, losses


@dataclass(frozen=True)
class _Laplace(ModeCriterion):
    """Laplace's approximation of the log evidence per row, for the curvatures of a subclass."""

    greater_is_better = True
    looks_at_penalty = True

    @abstractmethod
    def _curvatures(self, alpha: tf.Tensor, C: tf.Tensor) -> tf.Tensor:
        """
        :param alpha: of `rows`.
        :return: the curvatures of their losses.
        """

    def _of(self, mode: Mode) -> tf.Tensor:
        C = mode.penalty
        z = mode.margins
        log_q = -tf.reduce_mean(mode.alpha * z / 2 + C * losses(self.slack, z))
        root = tf.sqrt(self._curvatures(taken(mode.alpha, mode.marginal), C))
        B = root[:, None] * block_of(mode) * root + tf.eye(len(mode.marginal), dtype=root.dtype)
        half_log_det = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(tf.linalg.cholesky(B))))
        return log_q + log_kappa(self.slack, C) - half_log_det / len(mode.y)


class LaplaceEvidence(_Laplace):
    r"""
    Laplace's approximation of the log evidence per row (eq. 15, 16), for linear slack; greater is
    better:

        1/N log Q* - 1/(2N) log det(I + L_m K_m),    L_m = diag(2 pi (alpha (C - alpha) / C)^2),
        1/N log Q* = 1/N sum_n (-1/2 alpha_n z_n - C l(z_n)) + log kappa,

    with m the support vectors on the margin, where the loss's kink is integrated exactly. The
    factor kappa = 1 / (1 + exp(-2 C)) makes both labels sum to at most 1. Without a row on the
    margin the value is log Q*, with a warning.
    """

    slack = "linear"

    def _curvatures(self, alpha: tf.Tensor, C: tf.Tensor) -> tf.Tensor:
        if len(alpha) == 0:
            warnings.warn(
                "all support vectors are at the bound, none is on the margin: Laplace's evidence "
                "sees no curvature; use a larger penalty or variance",
                stacklevel=5,
            )
        return 2 * np.pi * tf.square(alpha * (C - alpha) / C)


@dataclass(frozen=True)
class QuadraticLaplaceEvidence(_Laplace):
    r"""
    Laplace's approximation of the log evidence per row (eq. 16, 17), of quadratic slack; greater is
    better:

        1/N log Q* - 1/(2N) log det(I + M_SV K_SV),    M = C diag(exp(-a / (1 - z))),

    where a smooths the step in the loss's second derivative; a = 0: no smoothing.

    :ivar smoothing: a.
    """

    slack = "quadratic"

    smoothing: float = 0.1

    def __post_init__(self) -> None:
        check_number(0, smoothing=self.smoothing)

    def _curvatures(self, alpha: tf.Tensor, C: tf.Tensor) -> tf.Tensor:
        return C * tf.exp(-self.smoothing * C / alpha)  # 1 - z = alpha / C


#: Maps a penalty to a likelihood, such as `Hinge`.
MakeLikelihood = Callable[[float], Likelihood]
_NORMALIZED = partial(Hinge, normalizer=True)


@dataclass(frozen=True)
class VariationalBound(Criterion):
    """
    The evidence lower bound per row of a `BatchBSVM`, fitted by `gpflow_bsvm.fit` at the given
    kernel; greater is better. Like the paper's evidence, it includes the normalizer kappa by
    default: without kappa a small penalty is always best.

    :ivar likelihood: a function from a penalty to a likelihood.
    """

    greater_is_better = True
    likelihood: MakeLikelihood = _NORMALIZED

    @property
    def slack(self) -> str:
        """:return: "linear" for `Hinge`, else the likelihood's name (it has no machine)."""
        likelihood = self.likelihood(1.0)
        return "linear" if type(likelihood) is Hinge else type(likelihood).__name__

    def __call__(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> float:
        """As in `Criterion`."""
        model = BatchBSVM(data, kernel, self.likelihood(check_penalty(penalty)))
        fit(model)
        return float(model.elbo()) / len(data[0])
