r"""Levels of probability t, their functions f_t = b_t + sum_q W_tq g_q, and P from these functions.

The function at level t should be positive where P(y = 1 | x) > t. Averaged over t uniform on (0,
1),

    P(y = 1 | x) = int_0^1 P(f_t(x) > 0) dt,

see `log_probabilities`. If the functions can shift together, they also determine the P at which
another row would not shift them (`log_slopes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import AnyNDArray, TensorType
from scipy.special import expit, logit

from ..checks import check_number, check_whole, is_number
from .base import VARIANCE_FLOOR
from .classes import normal_cdf, normal_log_cdf, normal_pdf

#: Links: the integral over levels, or the probability at which the loss is stationary.
LINKS = ("integral", "stationary")
#: Phi is treated as constant between values of z closer than this.
_NEAR = 1e-7
#: The end of the default levels, in logit t.
_OUTERMOST = 4.0
#: Spacing of the integral's knots in logit t, up to `_EVEN`. From there to `_REACH`, where errors
#: in logit t matter less, the spacing is proportional to logit t.
_SPACING = 0.125
_EVEN = 2.0
_REACH = 16.0


@dataclass(frozen=True, eq=False)
class Levels:
    """
    Functions f_k = b_k + sum_q W_kq g_q, one for each of T levels t_k. Mean and variance of f_t are
    linear in logit t between levels, and constant beyond the first and last levels.

    :ivar t: [T], increasing, in (0, 1).
    :ivar W: [T, Q], of rank Q.
    :ivar b: [T].
    """

    t: AnyNDArray
    W: AnyNDArray
    b: AnyNDArray

    def __post_init__(self) -> None:
        """
        :raise ValueError: for levels that do not increase within (0, 1), a W or b that is not
            finite or has the wrong shape, or a W of lower rank.
        """
        t = check_levels(self.t)
        W, b = (np.asarray(part, np.float64) for part in (self.W, self.b))
        if W.ndim != 2 or len(W) != len(t) or b.shape != t.shape:
            raise ValueError(
                f"{len(t)} levels need W of shape [{len(t)}, Q] and b of shape [{len(t)}], got "
                f"{W.shape} and {b.shape}"
            )
        if not np.isfinite([*W.flat, *b]).all() or np.linalg.matrix_rank(W) < W.shape[1]:
            raise ValueError(
                f"W and b must be finite, and W of rank Q = {W.shape[1]}: otherwise data determine "
                "only some combinations of the latent functions"
            )
        for name, part in {"t": t, "W": W, "b": b}.items():
            object.__setattr__(self, name, part)

    @property
    def num_latents(self) -> int:
        """:return: Q."""
        return int(self.W.shape[1])

    @property
    def shift_together(self) -> bool:
        """:return: True if fewer latent functions than levels can shift every f_k equally."""
        ones = np.ones(len(self.W))
        shift = np.linalg.lstsq(self.W, ones, rcond=None)[0]
        return len(ones) > self.num_latents and bool(np.allclose(self.W @ shift, ones))

    @check_shapes("s: [J]", "return[0]: [J]", "return[1]: [J, Q]", "return[2]: [J, Q]")
    def at(self, s: AnyNDArray) -> tuple[AnyNDArray, AnyNDArray, AnyNDArray]:
        """:return: b, W and W^2 at s = logit t."""
        known = logit(self.t)
        columns = np.column_stack([self.b, self.W, np.square(self.W)])
        b, *rest = (np.interp(s, known, column) for column in columns.T)
        Q = self.num_latents
        return b, np.stack(rest[:Q], axis=-1), np.stack(rest[Q:], axis=-1)

    def knots(self) -> tuple[AnyNDArray, ...]:
        """
        :return: t from 0 to 1, [J], and b, W and W^2 there, see `at`; z(t) = mean / deviation of
            f_t is treated as linear between these knots.
        """
        growing = round(np.log(_REACH / _EVEN) / np.log1p(_SPACING / _EVEN))
        outer = np.geomspace(_EVEN, _REACH, growing + 1)
        half = np.concatenate([np.arange(0, _EVEN, _SPACING), outer])
        # Rounded, so that a level coincides with its knot.
        s = np.unique(np.round(np.concatenate([-half, half, logit(self.t)]), 12))
        s = np.concatenate([s[:1], s, s[-1:]])  # constant beyond the outermost knots
        t = expit(s)
        t[0] = 0.0
        t[-1] = 1.0
        return t, *self.at(s)


@dataclass(frozen=True, eq=False)
class LocationSpread(Levels):
    """See `location_spread`. The functions are exact at every t, not only at the levels."""

    @inherit_check_shapes
    def at(self, s: AnyNDArray) -> tuple[AnyNDArray, AnyNDArray, AnyNDArray]:
        slope, base = np.polyfit(logit(self.t), np.column_stack([self.b, self.W]), 1)
        columns = base + slope * s[:, None]
        return columns[:, 0], columns[:, 1:], np.square(columns[:, 1:])


def location_spread(levels: int | Sequence[float] = 17, spread: float = 0.4) -> Levels:
    """
    f_t = g_0 - logit(t) (1 + spread g_1): location and spread, Q = 2. Given g_0 and g_1, logit P is
    g_0 / |1 + spread g_1|.

    :param levels: the levels, or the number T >= 2 of levels evenly spaced from -4 to 4 in logit t.
    :param spread: prior standard deviation of the spread, relative to that of f; if 0, Q = 1.
    """
    check_number(0, spread=spread)
    if isinstance(levels, (int, np.integer)):
        check_whole(2, levels=levels)
        s = np.linspace(-_OUTERMOST, _OUTERMOST, levels)
    else:
        t = check_levels(levels)
        check_whole(2, levels=t.size)
        s = logit(t)
    W = np.stack([np.ones_like(s), -spread * s], axis=-1)
    return LocationSpread(expit(s), W if spread else W[:, :1], -s)


def check_levels(levels: Any) -> AnyNDArray:
    """
    :return: [T], the levels.
    :raise ValueError: unless they are numbers that increase within (0, 1).
    """
    given = np.asarray(levels, object)
    inside = given.ndim == 1 and all(is_number(t) and 0 < t < 1 for t in given)
    if not (inside and given.size and (np.diff(given) > 0).all()):
        raise ValueError(f"levels must increase within (0, 1), as (0.2, 0.8), got {levels!r}")
    return given.astype(np.float64)


@check_shapes("Fmu: [batch..., Q]", "Fvar: [batch..., Q]", "return[all]: [...]")
def log_slopes(
    knots: Sequence[TensorType], Fmu: tf.Tensor, Fvar: tf.Tensor, threshold: Any = 0.0
) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param knots: t [..., T], b [T], W and W^2 [T, Q].
    :param threshold: subtracted from the functions; broadcasts with Fmu without its last axis.
    :return: log sum_k t_k Phi((1 + m_k) / s_k) and log sum_k (1 - t_k) Phi((1 - m_k) / s_k), with
        mean m_k and deviation s_k of the function at t_k: up to a factor, the derivative of the
        expected loss of y = 0 and the negative derivative of the loss of y = 1 with respect to a
        shift of all functions. Both are accurate even if small.
    """
    t, mean, s = _functions(knots, Fmu, Fvar, threshold)
    rising = normal_log_cdf((1 + mean) / s) + tf.math.log(t)
    falling = normal_log_cdf((1 - mean) / s) + tf.math.log1p(-t)
    return tf.reduce_logsumexp(rising, axis=-1), tf.reduce_logsumexp(falling, axis=-1)


def _functions(
    knots: Sequence[TensorType], Fmu: tf.Tensor, Fvar: tf.Tensor, threshold: Any
) -> tuple[tf.Tensor, ...]:
    """:return: t, and mean and deviation of f_t - threshold, [..., T]."""
    t, b, W, W2 = (tf.convert_to_tensor(part, Fmu.dtype) for part in knots)
    least = tf.convert_to_tensor(threshold, Fmu.dtype)[..., None]
    mean = b + tf.einsum("...q,jq->...j", Fmu, W) - least
    variance = tf.einsum("...q,jq->...j", Fvar, W2)
    return t, mean, tf.sqrt(tf.maximum(variance, VARIANCE_FLOOR))


@check_shapes("Fmu: [batch..., Q]", "Fvar: [batch..., Q]", "return[all]: [...]")
def log_probabilities(
    knots: Sequence[AnyNDArray], Fmu: tf.Tensor, Fvar: tf.Tensor, threshold: Any = 0.0
) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :param knots: see `Levels.knots`.
    :param threshold: y = 1 if f_t exceeds it; broadcasts with Fmu without its last axis.
    :return: log P(y = 1) and log P(y = 0), both accurate for small probabilities.
    """
    t, mean, s = _functions(knots, Fmu, Fvar, threshold)
    above, below = mean_normal_cdf(mean / s)
    dt = t[1:] - t[:-1]
    tiny = np.finfo(Fmu.dtype.as_numpy_dtype).tiny  # log 0 would have NaN gradients
    sums = (tf.linalg.matvec(part, dt) for part in (above, below))
    return tuple(tf.math.log(tf.maximum(part, tiny)) for part in sums)


@check_shapes("z: [batch..., J]", "return[all]: [batch..., K]")
def mean_normal_cdf(z: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :return: the means of Phi(z) and Phi(-z) between neighboring z, K = J - 1, both accurate if
        small: difference quotients of z Phi(z) + phi(z) = max(0, z) + r(z).
    """
    outside = normal_cdf(-tf.abs(z))
    r = normal_pdf(z) - tf.abs(z) * outside
    width = z[..., 1:] - z[..., :-1]
    near = tf.abs(width) < _NEAR
    divisor = tf.where(near, tf.ones_like(width), width)
    positive = tf.cast(z[..., 1:] > 0, z.dtype)
    ramp = tf.nn.relu(z)
    side = tf.where(near, positive, (ramp[..., 1:] - ramp[..., :-1]) / divisor)
    slope = (1 - 2 * positive) * outside[..., 1:]
    rest = tf.where(near, slope, (r[..., 1:] - r[..., :-1]) / divisor)
    return side + rest, (1 - side) - rest
