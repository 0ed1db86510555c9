r"""Bounds on the leave-one-out error (Gold & Sollich 2003, section 3.1): crude, and cheap.

f is the support vector machine's, z_n = y_n f_n, K^C = K + I / C, and H(a) = 1 for a >= 0.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import OneClassSVM

from .criterion import Machine, ModeCriterion, StepCriterion
from .gram import check_gram, check_positive
from .mode import Mode

#: LibSVM's tolerance, relative to the size of the ball; it keeps the matrix in single precision,
#: and the error of the squared radius is the square of that of the weights.
_TOL = 1e-8
_MOST_STEPS = 200_000
#: Warn of a relative gap between the bounds on the squared radius above this.
_GAP = 1e-4


class Ball(NamedTuple):
    """The smallest ball in feature space that encloses all rows."""

    square: float  #: of the radius
    weights: AnyNDArray  #: [N], of the centre sum_n weights_n phi(x_n), positive on the surface
    gap: float  #: the squared radius is at most this much too small


def enclosing_ball(gram: Any) -> Ball:
    r"""
    R^2 = max_b sum_n b_n K_nn - b^T K b, b_n >= 0, sum_n b_n = 1: LibSVM's one-class machine of the
    matrix -D / 2, D_nm = K_nn + K_mm - 2 K_nm the squared distances, solves it.

    :param gram: [N, N], symmetric and positive semidefinite.
    :raise ValueError: for another.
    """
    K = check_gram(gram, len(gram))
    check_positive(K)
    distances = np.maximum(K.diagonal()[:, None] + K.diagonal() - 2 * K, 0)
    if (size := float(distances.max())) == 0:
        return Ball(0.0, np.full(len(K), 1 / len(K)), 0.0)
    machine = OneClassSVM(
        kernel="precomputed", nu=1 / len(K), tol=_TOL, max_iter=_MOST_STEPS, shrinking=False
    )
    with warnings.catch_warnings():  # the gap is checked at the end
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(0.5 - distances / (2 * size))
    weights = np.zeros(len(K))
    weights[machine.support_] = np.maximum(machine.dual_coef_[0], 0)
    weights /= weights.sum()
    spread = weights @ distances @ weights / 2
    to_centre = distances @ weights - spread  # squared distances; their maximum bounds R^2
    ball = Ball(float(spread), weights, float(max(to_centre.max() - spread, 0.0)))
    if ball.gap > _GAP * ball.square:
        warnings.warn(
            f"the enclosing ball is not solved: R^2 = {ball.square:.6g} is too small by up to "
            f"{ball.gap:.1e}; merge equal rows",
            ConvergenceWarning,
            stacklevel=3,
        )
    return ball


@dataclass(frozen=True)
class RadiusMargin(ModeCriterion):
    r"""
    The bound by radius and margin (eq. 9), for quadratic slack; smaller is better:

        R^2 / N sum_n alpha_n,

    with R the radius of the smallest ball in the feature space of K^C that encloses all rows (there
    the machine separates them, by a margin of 1 / sqrt(sum_n alpha_n)). Because the offset is not
    free here, only R^2 = max_n K^C_nn, a ball about the origin, guarantees a bound.

    :ivar about_origin: use this ball.
    """

    greater_is_better = False
    looks_at_penalty = False
    slack = "quadratic"

    about_origin: bool = False

    def _of(self, seen: Machine) -> tf.Tensor:
        N = len(seen.y)
        gram = seen.gram + tf.eye(N, dtype=seen.gram.dtype) / seen.penalty
        diagonal = tf.linalg.diag_part(gram)
        if self.about_origin:
            square = tf.reduce_max(diagonal)
        else:  # a maximum over the weights, so that they count as fixed in derivatives
            b = tf.constant(enclosing_ball(gram.numpy()).weights, gram.dtype)
            square = tf.reduce_sum(b * diagonal) - tf.reduce_sum(b * tf.linalg.matvec(gram, b))
        return square * tf.reduce_mean(seen.alpha)


class SupportVectorCount(StepCriterion):
    """
    The training error plus the fraction of support vectors (below eq. 10); smaller is better:
    leaving out another row changes nothing. A step function.
    """

    def of_mode(self, mode: Mode) -> float:
        """:return: the bound for a machine."""
        wrong = mode.y * mode.latent <= 0
        return float(wrong.mean() + len(mode.support) / len(mode.y))


class JaakkolaHaussler(StepCriterion):
    r"""
    Jaakkola and Haussler's bound (section 3.1); smaller is better: z_n decreases by at most alpha_n
    K_nn if row n is left out, so that

        1/N sum_n H(alpha_n K_nn - z_n)

    is never less than the leave-one-out error. A step function; `SmoothedSpan` with a large eta is
    its smooth form.
    """

    def of_mode(self, mode: Mode) -> float:
        """:return: the bound of a machine."""
        falls = mode.alpha * mode.gram.diagonal()
        return float((falls >= mode.y * mode.latent).mean())
