r"""Losses of the margin z = y f with linear and quadratic slack (Gold & Sollich 2003, eq. 2, 6):

l(z) = max(0, 1 - z)    or    max(0, 1 - z)^2 / 2,    Q(y | f) = kappa(C) exp(-C l(y f)).
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from ...likelihoods import Hinge
from .squared_hinge import SquaredHinge, log_kappa_of_squares

SLACKS = ("linear", "quadratic")


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
    :return: the logarithm of the normalizer, 1 / kappa = max_z exp(-C l(z)) + exp(-C l(-z)), which
        makes both labels sum to at most 1 (eq. 6).
    """
    penalty = tf.convert_to_tensor(penalty, tf.float64)
    if slack == "linear":
        return -tf.math.log1p(tf.exp(-2 * penalty))
    return log_kappa_of_squares(penalty / 2)
