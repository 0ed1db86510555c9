r"""Losses of the margin z = y f with linear and quadratic slack (Gold & Sollich 2003, eq. 2, 6):

l(z) = max(0, 1 - z)    or    max(0, 1 - z)^2 / 2,    Q(y | f) = kappa(C) exp(-C l(y f)).
"""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood
from scipy.optimize import brentq

from ...likelihoods import Hinge
from .squared_hinge import SquaredHinge

SLACKS = ("linear", "quadratic")


def losses(slack: str, z: AnyNDArray) -> AnyNDArray:
    """:return: l(z), in the shape of z."""
    lacking: AnyNDArray = np.maximum(1 - z, 0)
    return lacking if slack == "linear" else lacking**2 / 2


def slopes(slack: str, z: AnyNDArray) -> AnyNDArray:
    """:return: dl / dz <= 0, in the shape of z."""
    return np.where(z < 1, -1.0, 0.0) if slack == "linear" else -np.maximum(1 - z, 0)


def likelihood_of(slack: str, penalty: float) -> Likelihood:
    """:return: exp(-C l(y f)), without kappa, as a likelihood of this package."""
    return Hinge(penalty) if slack == "linear" else SquaredHinge(penalty / 2)


def log_kappa(slack: str, penalty: tf.Tensor) -> tf.Tensor:
    """
    The normalizer of exp(-C l(z)): 1 / kappa = max_z exp(-C l(z)) + exp(-C l(-z)), so that both
    labels sum to at most 1 (eq. 6). With linear slack 1 / kappa = 1 + exp(-2 C); with quadratic
    slack the maximum is at z = tanh(C z). `SquaredHinge` searches z on a grid, which suffices for
    training, but not for derivatives in C.

    :param penalty: C, [].
    """
    if slack == "linear":
        return -tf.math.log1p(tf.exp(-2 * penalty))
    C = float(penalty)
    z = 0.0 if C < 1 + 1e-6 else brentq(lambda z: z - math.tanh(C * z), 1e-6, 1.0, xtol=1e-15)
    exponents = tf.stack([-penalty * (1 - z) ** 2 / 2, -penalty * (1 + z) ** 2 / 2])
    return -tf.reduce_logsumexp(exponents)
