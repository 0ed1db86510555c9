"""Levels of probability t, and the functions at them, f_t = b_t + sum_q W_tq g_q."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from gpflow.base import AnyNDArray
from scipy.special import expit, logit

from ..checks import check_whole
from .level_links import Knots

#: Levels that are not given end here, in logit t.
_OUTERMOST = 4.0
#: The integral over t has knots this near to each other in logit t, up to `_EVEN`. From there to
#: `_REACH`, where an error in logit t changes t less, their distances grow as logit t does.
_SPACING, _EVEN, _REACH = 0.125, 2.0, 16.0


@dataclass(frozen=True, eq=False)
class Levels:
    """
    Functions f_k = b_k + sum_q W_kq g_q, one for each of T levels t_k. Between levels mean and
    variance of f_t are linear in logit t, beyond the first and the last they are theirs.

    :ivar t: [T], increasing, in (0, 1).
    :ivar W: [T, Q], of rank Q.
    :ivar b: [T].
    """

    t: AnyNDArray
    W: AnyNDArray
    b: AnyNDArray

    def __post_init__(self) -> None:
        """
        :raise ValueError: for levels that do not increase within (0, 1), or a W or b of another
            shape.
        """
        t, W, b = (np.asarray(part, np.float64) for part in (self.t, self.W, self.b))
        check_levels(t)
        if W.ndim != 2 or len(W) != len(t) or b.shape != t.shape:
            raise ValueError(
                f"{len(t)} levels need W of shape [{len(t)}, Q] and b of shape [{len(t)}], got "
                f"{W.shape} and {b.shape}"
            )
        if not np.isfinite(W).all() or np.linalg.matrix_rank(W) < W.shape[1]:
            raise ValueError(
                f"W must be finite and of rank Q = {W.shape[1]}: else data tell only some "
                "combinations of the latent functions"
            )
        for name, part in {"t": t, "W": W, "b": b}.items():
            object.__setattr__(self, name, part)

    @property
    def num_latents(self) -> int:
        """:return: Q."""
        return int(self.W.shape[1])

    @property
    def shift_together(self) -> bool:
        """:return: True if some change of the latent functions adds the same to every f_k."""
        ones = np.ones(len(self.W))
        shift = np.linalg.lstsq(self.W, ones, rcond=None)[0]
        return len(ones) > self.num_latents and bool(np.allclose(self.W @ shift, ones))

    def at(self, s: AnyNDArray) -> tuple[AnyNDArray, AnyNDArray, AnyNDArray]:
        """
        :param s: [J], logit t.
        :return: b [J], W [J, Q] and W^2 [J, Q] there.
        """
        known = logit(self.t)
        columns = np.column_stack([self.b, self.W, np.square(self.W)])
        b, *rest = (np.interp(s, known, column) for column in columns.T)
        Q = self.num_latents
        return b, np.stack(rest[:Q], axis=-1), np.stack(rest[Q:], axis=-1)

    def knots(self) -> Knots:
        """:return: between which z(t) = mean / deviation of f_t is taken to be linear in t."""
        growing = round(np.log(_REACH / _EVEN) / np.log1p(_SPACING / _EVEN))
        outer = np.geomspace(_EVEN, _REACH, growing + 1)
        half = np.concatenate([np.arange(0, _EVEN, _SPACING), outer])
        # Rounded, so that a level is not beside a knot that it lies on.
        s = np.unique(np.round(np.concatenate([-half, half, logit(self.t)]), 12))
        s = np.concatenate([s[:1], s, s[-1:]])  # constant from the outermost knots to 0 and 1
        t = expit(s)
        t[0], t[-1] = 0.0, 1.0
        return Knots(t, *self.at(s))


@dataclass(frozen=True, eq=False)
class LocationSpread(Levels):
    """See `location_spread`; exact between levels and beyond."""

    def at(self, s: AnyNDArray) -> tuple[AnyNDArray, AnyNDArray, AnyNDArray]:
        """See `Levels`."""
        slope, base = np.polyfit(logit(self.t), np.column_stack([self.b, self.W]), 1)
        columns = base + slope * s[:, None]
        return columns[:, 0], columns[:, 1:], np.square(columns[:, 1:])


def location_spread(levels: int | Sequence[float] = 17, spread: float = 0.4) -> Levels:
    """
    f_t = g_0 - logit(t) (1 + spread g_1): location and spread, Q = 2. With both known logit P is
    g_0 / (1 + spread g_1).

    :param levels: T, at least 2, evenly from -4 to 4 in logit t, or the levels themselves.
    :param spread: prior deviation of the spread in deviations of f; 0: there is none, Q = 1.
    """
    s = logit(as_levels(levels, 2))
    W = np.stack([np.ones_like(s), -spread * s], axis=-1)
    return LocationSpread(expit(s), W if spread else W[:, :1], -s)


def as_levels(levels: int | Sequence[float], least: int) -> AnyNDArray:
    """
    :return: [T].
    :raise ValueError: see `Levels`, or for fewer than `least`.
    """
    if isinstance(levels, (int, np.integer)):
        check_whole(least, levels=levels)
        return np.asarray(
            expit(np.linspace(-_OUTERMOST, _OUTERMOST, levels)) if levels > 1 else [0.5]
        )
    t = np.asarray(levels, np.float64)
    check_levels(t)
    check_whole(least, levels=t.size)
    return t


def check_levels(t: AnyNDArray) -> None:
    """:raise ValueError: unless they increase within (0, 1)."""
    if t.ndim != 1 or len(t) < 1 or not (t[0] > 0 and t[-1] < 1 and (np.diff(t) > 0).all()):
        raise ValueError(f"levels must increase within (0, 1), got {t.tolist()}")
