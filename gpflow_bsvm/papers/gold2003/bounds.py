r"""Crude but cheap bounds on the leave-one-out error (Gold & Sollich 2003, section 3.1).

f is the machine's decision function, z_n = y_n f_n, K^C = K + I / C, and H(a) = 1 for a >= 0.
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
from .gram import check_gram, root_of
from .mode import Mode

#: LibSVM's tolerance, relative to the size of the ball. Its matrix is in single precision; the
#: squared radius has the squared error of the weights.
_TOL = 1e-8
_MOST_STEPS = 200_000
#: Warn if the bounds on the squared radius differ by more than this, relatively.
_GAP = 1e-4


class Ball(NamedTuple):
    """The smallest ball in feature space that encloses all rows."""

    square: float  #: of the radius
    weights: AnyNDArray  #: [N], of the centre sum_n weights_n phi(x_n), positive on the surface
    gap: float  #: largest error of the (too small) squared radius


def enclosing_ball(gram: Any) -> Ball:
    r"""
    R^2 = max_b sum_n b_n K_nn - b^T K b, b_n >= 0, sum_n b_n = 1: Solved by LibSVM's one-class
    machine for the matrix -D / 2, with the squared distances D_nm = K_nn + K_mm - 2 K_nm.

    :param gram: [N, N], symmetric and positive semidefinite.
    :raise ValueError: for another matrix.
    """
    K = check_gram(gram, len(gram))
    root_of(K)  # raises
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

    with R the radius of the smallest ball that encloses all rows in the feature space of K^C, where
    the machine separates them by a margin of 1 / sqrt(sum_n alpha_n). As the offset is not free
    here, only a ball about the origin, R^2 = max_n K^C_nn, guarantees a bound.

    :ivar about_origin: use the ball about the origin.
    """

    slack = "quadratic"

    about_origin: bool = False

    def _of(self, seen: Machine) -> tf.Tensor:
        N = len(seen.y)
        gram = seen.gram + tf.eye(N, dtype=seen.gram.dtype) / seen.penalty
        diagonal = tf.linalg.diag_part(gram)
        if self.about_origin:
            square = tf.reduce_max(diagonal)
        else:  # constant weights in derivatives, as at a maximum
            b = tf.constant(enclosing_ball(gram.numpy()).weights, gram.dtype)
            square = tf.reduce_sum(b * diagonal) - tf.reduce_sum(b * tf.linalg.matvec(gram, b))
        return square * tf.reduce_mean(seen.alpha)


class SupportVectorCount(StepCriterion):
    """
    The training error plus the fraction of support vectors (below eq. 10); smaller is better.
    Leaving out any other row changes nothing. It is a step function.
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

    is an upper bound of the leave-one-out error. It is a step function; `SmoothedSpan` with a large
    eta is its smooth form.
    """

    def of_mode(self, mode: Mode) -> float:
        """:return: the bound of a machine."""
        falls = mode.alpha * mode.gram.diagonal()
        return float((falls >= mode.y * mode.latent).mean())
