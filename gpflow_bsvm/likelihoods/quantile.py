"""Several quantiles of y given x, each by a pinball loss of two hinges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow import set_trainable
from gpflow.base import MeanAndVariance, TensorType
from scipy.special import logit

from .hinge import HingeSum, Terms
from .levels import check_levels
from .penalized import check_penalty
from .regression import check_numbers, numbers


class Quantile(HingeSum):
    r"""
    Quantiles of y at K levels tau (Koenker & Bassett 1978), by asymmetric Laplace densities (Yu &
    Moyeed 2001), with C = penalty:

        p_k(y | f) = C tau_k (1 - tau_k) exp(-C rho_k(y - f_k)),
        rho_k(e) = tau_k max(0, e) + (1 - tau_k) max(0, -e),    f_k = b_k + sum_q W_kq g_q.

    - tied: location and spread, Q = 2, f_k = g_0 + logit(tau_k) (scale + g_1): quantiles do not
      cross where scale + g_1 is positive. `num_latent_gps=2`.
    - independent: f_k = g_k, Q = K, `num_latent_gps=K`.

    Training maximizes their product to the power Q / K, so that K levels weigh as much as Q
    functions. Each density is normalized, so that the evidence determines `penalty`, which is
    trainable.

    `predict_y` returns mean and variance of the quantiles themselves, [N, K] each, under q: they
    are not a distribution of y, and have no predictive density.

    :ivar levels: tau, [K]; `tied` and `scale` are as given, and `weight` is Q / K.
    """

    def __init__(
        self,
        levels: Sequence[float] = (0.1, 0.5, 0.9),
        penalty: float = 2.0,
        bound: str = "exact",
        *,
        tied: bool = True,
        scale: float = 0.5,
    ) -> None:
        """
        :param levels: increasing, in (0, 1); at least two if tied.
        :param penalty: positive, in units of 1 / y.
        :param bound: "exact" or "augmented", see `HingeSum`.
        :param scale: for tied quantiles, the prior distance per unit of logit tau, in units of y.
        :raise ValueError: for other values.
        """
        self.levels = np.asarray(levels, np.float64)
        self.tied = tied
        self.scale = scale
        check_levels(self.levels)
        K = len(self.levels)
        logits = logit(self.levels)
        if tied and K < 2:
            raise ValueError("tied quantiles need at least two levels: for one, give tied=False")
        W = np.stack([np.ones(K), logits], axis=-1) if tied else np.eye(K)
        b = check_penalty(scale, "scale") * logits if tied else np.zeros(K)
        # The hinges of y above the quantiles come first, then those of y below.
        super().__init__(
            penalty,
            bound,
            W=np.tile(W, (2, 1)),
            b=np.tile(b, 2),
            input_dim=None,
            observation_dim=None,
            latent_dim=W.shape[1],
        )
        self.weight = W.shape[1] / K
        set_trainable(self.penalty, True)

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """:raise ValueError: for numbers that are not finite, or not in one column."""
        numbers(Y, 1)
        check_numbers(Y)

    def check_learnable(self) -> None:
        """Do nothing: the densities are normalized."""

    @inherit_check_shapes
    def log_kappa(self) -> tf.Tensor:
        """:return: sum_k log(C tau_k (1 - tau_k)), weighted, []."""
        shapes = float(np.sum(np.log(self.levels * (1 - self.levels))))
        return self.weight * (len(self.levels) * tf.math.log(self.penalty) + shapes)

    @inherit_check_shapes
    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: Y, [..., 1]."""
        return numbers(Y, 1)

    @inherit_check_shapes
    def terms(self, y: tf.Tensor) -> Terms:
        """:return: the hinges of y - f_k, with cost tau_k, then of f_k - y, with cost 1 - tau_k."""
        K = len(self.levels)
        tau = self.levels
        cost = self.weight * np.concatenate([tau, 1 - tau])
        sign = tf.constant(np.repeat([1.0, -1.0], K), y.dtype)
        return Terms(tf.constant(cost, y.dtype), sign * y, sign)

    @inherit_check_shapes
    def _conditional_mean(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return self.functions(F)[..., 0, : len(self.levels)]

    @inherit_check_shapes
    def _conditional_variance(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return tf.zeros_like(self._conditional_mean(X, F))

    @inherit_check_shapes
    def _predict_mean_and_var(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        variance = self._seen_through(Fvar, np.square(self.W))[..., 0, : len(self.levels)]
        return self._conditional_mean(X, Fmu), variance

    def _predict_log_density(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> NoReturn:
        raise ValueError(
            "quantiles define no density of y: compare them by sklearn.metrics.mean_pinball_loss, "
            "or use EpsilonInsensitive, which has a density"
        )
