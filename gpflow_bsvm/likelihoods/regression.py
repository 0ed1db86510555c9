"""Numbers as labels: the epsilon-insensitive loss as a density, and quantiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter, set_trainable
from gpflow.base import MeanAndVariance, TensorType
from gpflow.likelihoods import Gaussian, Likelihood, ScalarLikelihood, StudentT
from gpflow.utilities import positive, to_default_float
from scipy.special import logit

from .base import VARIANCE_FLOOR, check_penalty
from .classes import normal_cdf, normal_log_cdf, normal_pdf
from .hinge import HingeSum, Terms
from .labels import check_columns, check_numeric
from .levels import check_levels


def is_of_numbers(likelihood: Likelihood) -> bool:
    """:return: True if labels are numbers, with noise that is symmetric around f."""
    return isinstance(likelihood, (EpsilonInsensitive, Gaussian, StudentT))


class EpsilonInsensitive(HingeSum, ScalarLikelihood):
    r"""
    Support vector regression (Vapnik 1995) as a likelihood: errors up to epsilon cost nothing,

        p(y | f) = exp(-penalty max(0, |y - f| - epsilon)) / Z,    Z = 2 (epsilon + 1 / penalty),

    with two hinges and one latent function for each column of Y [N, P]. The density is normalized:
    the evidence therefore determines `penalty` and `epsilon`. Both are trainable:
    `gpflow_bsvm.inference.VEM` and `ML2` learn them, `CAVI` keeps them fixed. For a kernel of unit
    prior variance, the mode is scikit-learn's SVR with C = penalty, but without its bias.

    Prediction is in closed form. With q(f) = N(m, v), the mean of y is m, and its variance is v
    plus the noise variance

        2 (epsilon^3 / 3 + epsilon^2 / C + 2 epsilon / C^2 + 2 / C^3) / Z,    C = penalty.

    The predictive density is the mean of p(y | f): the sum of a truncated Gaussian and two
    truncated Gaussians times exponentials, computed from logarithms.

    f and epsilon are in units of y, penalty in units of 1 / y: standardize y, or choose epsilon,
    penalty and the kernel's variance accordingly.

    :ivar penalty: slope of the loss, a parameter.
    :ivar epsilon: half the width of the tube, a parameter.
    """

    has_normalizer = True

    def __init__(self, penalty: float = 2.0, epsilon: float = 0.1, bound: str = "exact") -> None:
        """
        :param penalty: positive, as is epsilon.
        :param bound: "exact" or "augmented", see `HingeSum`.
        :raise ValueError: for invalid values.
        """
        super().__init__(penalty, bound, W=[[1.0], [1.0]], b=[0.0, 0.0], normalizer=True)
        self.epsilon = Parameter(check_penalty(epsilon, "epsilon"), transform=positive())
        set_trainable(self.penalty, True)

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """:raise ValueError: for numbers that are not finite."""
        check_numbers(Y)

    def _log_kappa(self, penalty: tf.Tensor) -> tf.Tensor:
        return -tf.math.log(2 * (self.epsilon + 1 / penalty))  # -log Z

    @inherit_check_shapes
    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: Y, [..., P]."""
        return numbers(Y, tf.convert_to_tensor(F).shape[-1])

    @inherit_check_shapes
    def terms(self, y: tf.Tensor) -> Terms:
        """:return: the hinges of y - f - epsilon and of f - y - epsilon."""
        sign = tf.constant([1.0, -1.0], y.dtype)
        return Terms(1.0, sign * y - self.epsilon, sign)

    @property
    @check_shapes("return: []")
    def noise_variance(self) -> tf.Tensor:
        """:return: variance of y - f, []."""
        epsilon = tf.convert_to_tensor(self.epsilon)
        mean = 1 / self.penalty
        outside = tf.square(epsilon) * mean + 2 * epsilon * mean**2 + 2 * mean**3
        return (epsilon**3 / 3 + outside) / (epsilon + mean)

    @inherit_check_shapes
    def _conditional_mean(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return tf.identity(F)

    @inherit_check_shapes
    def _conditional_variance(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return self.noise_variance + tf.zeros_like(F)

    @inherit_check_shapes
    def _predict_mean_and_var(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        return tf.identity(Fmu), Fvar + self.noise_variance

    @inherit_check_shapes
    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        above, inside, below = self._log_pieces(self.targets(Y, Fmu) - Fmu, Fvar)
        log_p = tf.reduce_logsumexp(tf.stack([above, inside, below]), axis=0)
        return tf.reduce_sum(log_p + self.log_kappa(), axis=-1)

    @check_shapes("Fmu: [batch..., P]", "Fvar: [batch..., P]", "Y: [batch..., P]")
    def predict_cdf(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> tf.Tensor:
        """:return: P(y <= Y) at q(f) = N(Fmu, Fvar), in the shape of Y."""
        e = Y - Fmu
        s = _deviation(Fvar)
        above, inside, below = map(tf.exp, self._log_pieces(e, Fvar))
        high = (self.epsilon - e) / s
        low = (-self.epsilon - e) / s
        mean_inside = e * inside + s * (normal_pdf(low) - normal_pdf(high))
        tails = (below - above) / self.penalty
        return normal_cdf(-high) + inside / 2 + (mean_inside + tails) * tf.exp(self.log_kappa())

    @check_shapes("Fmu: [batch..., P]", "Fvar: [batch..., P]", "return: [batch..., P, T]")
    def predict_quantiles(
        self, Fmu: TensorType, Fvar: TensorType, levels: Sequence[float]
    ) -> tf.Tensor:
        """
        :param levels: [T], increasing, in (0, 1).
        :return: the quantiles of y at these levels.
        :raise ValueError: for invalid levels.
        """
        Fmu, Fvar = (to_default_float(part)[..., None] for part in (Fmu, Fvar))
        return self.find_quantiles(self.predict_cdf, Fmu, Fvar, levels)

    @check_shapes("Fmu: [batch..., 1]", "Fvar: [batch..., 1]", "return: [batch..., T]")
    def find_quantiles(
        self, cdf: Callable[..., tf.Tensor], Fmu: TensorType, Fvar: TensorType, levels: Any
    ) -> tf.Tensor:
        """As in `predict_quantiles`, with a function that computes `predict_cdf`."""
        t = check_levels(levels)
        deviation = tf.sqrt(tf.maximum(Fvar, 0) + self.noise_variance)
        low = Fmu - deviation * np.sqrt((1 - t) / t)  # Cantelli's inequality
        high = Fmu + deviation * np.sqrt(t / (1 - t))
        Fmu = Fmu + tf.zeros_like(low)
        Fvar = Fvar + tf.zeros_like(low)
        return tfp.math.find_root_chandrupatla(
            lambda y: cdf(Fmu, Fvar, y) - t, low, high, max_iterations=100
        ).estimated_root

    def _log_pieces(self, e: tf.Tensor, Fvar: TensorType) -> tuple[tf.Tensor, ...]:
        """
        :param e: y - Fmu.
        :return: logs of E[Z p(y | f)] over errors above epsilon, in the tube, and below -epsilon.
        """
        s = _deviation(Fvar)
        C = tf.convert_to_tensor(self.penalty)
        above, below = (_log_tail(side - self.epsilon, s, C) for side in (e, -e))
        most = normal_log_cdf((self.epsilon - tf.abs(e)) / s)
        least = normal_log_cdf((-self.epsilon - tf.abs(e)) / s)
        gap = tf.minimum(least - most, 0)  # rounding may exceed 0 for a tiny epsilon
        return above, most + tf.math.log(-tf.math.expm1(gap)), below


@check_shapes("x: [batch...]", "s: [batch...]", "C: []", "return: [batch...]")
def _log_tail(x: tf.Tensor, s: tf.Tensor, C: tf.Tensor) -> tf.Tensor:
    """
    :return: log E exp(-C u) 1(u > 0), u ~ N(x, s^2); with z = C s - x / s it is z^2 / 2 - (x / s)^2
        / 2 + log Phi(-z). The first two terms may cancel.
    """
    z = C * s - x / s
    right = tf.maximum(z, 0)
    left = tf.minimum(z, 0)
    far = tfp.math.logerfcx(right * np.sqrt(0.5)) - np.log(2) - tf.square(x / s) / 2
    # Unused for z > 0, but its gradient must be finite there.
    inner = tf.where(z > 0, tf.zeros_like(x), C * s * (C * s / 2 - x / s))
    return tf.where(z > 0, far, inner + normal_log_cdf(-left))


def _deviation(Fvar: TensorType) -> tf.Tensor:
    return tf.sqrt(tf.maximum(Fvar, VARIANCE_FLOOR))


def numbers(Y: TensorType, columns: int | None) -> tf.Tensor:
    """
    :return: Y in GPflow's default float.
    :raise ValueError: unless it has this many columns, and, outside of graphs, is finite.
    """
    Y = to_default_float(Y)
    check_columns(Y, columns, f"Y must have shape [..., {columns}]")
    if tf.executing_eagerly():
        check_numbers(Y)
    return Y


def check_numbers(Y: Any) -> None:
    """:raise ValueError: unless all labels are finite numbers."""
    check_numeric(Y)
    if not np.isfinite(Y).all():
        raise ValueError("Y holds NaN or infinity; drop such rows first")


class Quantile(HingeSum):
    r"""
    Quantiles of y at K levels tau (Koenker & Bassett 1978), learned with asymmetric Laplace
    densities (Yu & Moyeed 2001); with C = penalty,

        p_k(y | f) = C tau_k (1 - tau_k) exp(-C rho_k(y - f_k)),
        rho_k(e) = tau_k max(0, e) + (1 - tau_k) max(0, -e),    f_k = b_k + sum_q W_kq g_q.

    - tied: location and spread, with f_k = g_0 + logit(tau_k) (scale + g_1) and Q = 2. Quantiles do
      not cross where scale + g_1 is positive. `num_latent_gps=2`.
    - independent: f_k = g_k and Q = K. `num_latent_gps=K`.

    Training maximizes the product of the densities to the power Q / K, so that the K densities
    together count as Q. Each density is normalized: the evidence therefore determines `penalty`,
    which is trainable.

    `predict_y` returns the mean and variance under q of the quantiles, [N, K] each; the quantiles
    are not a distribution of y, and have no predictive density.

    :ivar levels: tau, [K]; `tied` and `scale` are as given, and `weight` is Q / K.
    """

    has_normalizer = True

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
        :param scale: prior distance of tied quantiles per unit of logit tau, in units of y.
        :raise ValueError: for invalid values.
        """
        self.levels = check_levels(levels)
        self.tied = tied
        self.scale = scale
        K = len(self.levels)
        logits = logit(self.levels)
        if tied and K < 2:
            raise ValueError("tied quantiles need two levels or more: give tied=False for one")
        W = np.stack([np.ones(K), logits], axis=-1) if tied else np.eye(K)
        b = check_penalty(scale, "scale") * logits if tied else np.zeros(K)
        # First come the hinges of y above the quantiles, then the hinges of y below.
        super().__init__(
            penalty,
            bound,
            W=np.tile(W, (2, 1)),
            b=np.tile(b, 2),
            normalizer=True,
            input_dim=None,
            observation_dim=None,
            latent_dim=W.shape[1],
        )
        self.weight = W.shape[1] / K
        set_trainable(self.penalty, True)

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """:raise ValueError: for numbers that are not finite, or not in one column."""
        check_numbers(Y)
        numbers(Y, 1)

    def _log_kappa(self, penalty: tf.Tensor) -> tf.Tensor:
        shapes = float(np.sum(np.log(self.levels * (1 - self.levels))))
        return self.weight * (len(self.levels) * tf.math.log(penalty) + shapes)

    @inherit_check_shapes
    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: Y, [..., 1]."""
        return numbers(Y, 1)

    @inherit_check_shapes
    def terms(self, y: tf.Tensor) -> Terms:
        """:return: hinges of y - f_k, cost tau_k Q / K, then of f_k - y, cost (1 - tau_k) Q / K."""
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
            "quantiles define no density of y: compare them with "
            "sklearn.metrics.mean_pinball_loss, or use EpsilonInsensitive, which has a density"
        )
