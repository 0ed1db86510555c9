"""Gradient ascent with a rate for each parameter, by gradients alone (Gold & Sollich 2003, 4.3)."""

from __future__ import annotations

import numpy as np
from gpflow.base import AnyNDArray

from .search import Ending, Look, Search

#: First step of each parameter, and the longest of all, in logarithms.
_FIRST, _LONGEST = 0.2, 1.0
#: First rates are at most that of a slope of this fraction of the largest.
_FLAT = 1e-2
#: A gradient counts as sharply increased if it grew by the first factor, as not quickly declined if
#: it kept the second, and as sharply turned if it has the third in the other direction.
_SHARP, _SLOW, _TURNED = 2.0, 0.8, 0.5
#: Ignore changes below this fraction of the largest gradient of all parameters: a tiny gradient
#: grows as the others move.
_SHARE = 0.2
#: Factors of a rate: after a step discarded because of it, or of another (whose gradient its own
#: step may have changed), after one that was too small, or a bit too long.
_LESS, _OTHERS, _MORE, _SHORTER = 0.4, 0.7, 1.5, 0.7
#: The ascent ends where gradients are so small beside their peaks, or as such, or within so many
#: standard errors; or where no step is longer than this.
_SMALL, _NOTHING, _NOISE, _SHORT = 0.02, 1e-5, 2.0, 1e-4


def ascend(search: Search, x: AnyNDArray, bounds: AnyNDArray, most: int) -> Ending:
    """
    A step is discarded, and the rates that are to blame decrease, where a parameter's gradient
    increases sharply or turns round, beyond what its standard error explains, or where the
    criterion, if it has values, is worse. Rates of gradients that do not decline quickly increase.
    Accepted places are kept. Each entry of a vector, such as lengthscales, has its own rate.

    :param bounds: [P, 2], which steps do not leave.
    :param most: gradients.
    """
    now, scale = _inside(search.look(x), bounds), search.scale(x)
    search.keep(now.x, now.cost, now.slope)
    rates, peaks = _first_rates(now, scale), np.abs(now.slope)
    for evaluations in range(1, most + 1):
        if (np.abs(now.slope) <= np.maximum(_small(peaks), _NOISE * now.error)).all():
            return Ending(now.x, evaluations, bool(np.isfinite(now.error).all()))
        step = np.clip(-rates * now.slope, -_LONGEST * scale, _LONGEST * scale)
        target = np.clip(now.x + step, bounds[:, 0], bounds[:, 1])
        if (np.abs(target - now.x) < _SHORT * scale).all():
            return Ending(now.x, evaluations, True)
        if evaluations == most:
            break
        new = _try(search, target, bounds)
        blamed = _blamed(now, new)
        if new is None or blamed.any():
            rates *= np.where(blamed, _LESS, _OTHERS)
            continue
        rates *= _change(now, new)
        peaks, now = np.maximum(peaks, np.abs(new.slope)), new
        search.keep(now.x, now.cost, now.slope)
    return Ending(now.x, most, False)


def _try(search: Search, x: AnyNDArray, bounds: AnyNDArray) -> Look | None:
    """:return: None where the kernel overflows, or sampling fails."""
    try:
        look = search.look(x)
    except ValueError:
        return None
    return _inside(look, bounds) if np.isfinite(look.error).all() else None


def _inside(look: Look, bounds: AnyNDArray) -> Look:
    """:return: the place, without slopes that point out of the bounds."""
    low, high = (look.x <= bounds[:, 0]), (look.x >= bounds[:, 1])
    leads_out = (low & (look.slope > 0)) | (high & (look.slope < 0))
    return look._replace(slope=np.where(leads_out, 0.0, look.slope))


def _first_rates(now: Look, scale: AnyNDArray) -> AnyNDArray:
    """:return: rates that make first steps `_FIRST` long, or less where the criterion is flat."""
    slope, error = (np.abs(part) * scale for part in (now.slope, now.error))
    noise = _NOISE * np.where(np.isfinite(error), error, 0)
    floor = np.maximum(noise, _FLAT * slope.max() + float(np.finfo(float).tiny))
    return np.asarray(_FIRST * scale**2 / np.maximum(slope, floor))


def _small(peaks: AnyNDArray) -> AnyNDArray:
    """:return: thresholds below which a gradient is small, [P]."""
    return np.maximum(_SMALL * peaks, _NOTHING)


def _blamed(now: Look, new: Look | None) -> AnyNDArray:
    """:return: True for entries whose step was too long, [P]; all if the criterion is worse."""
    if new is None or new.cost > now.cost:
        return np.ones(len(now.x), bool)
    before, after = np.abs(now.slope), np.abs(new.slope)
    noise = _NOISE * np.hypot(now.error, new.error)
    none = np.maximum(noise, _SHARE * before.max())
    turned = now.slope * new.slope < 0
    return np.asarray(after > np.where(turned, _TURNED, _SHARP) * before + none)


def _change(now: Look, new: Look) -> AnyNDArray:
    """:return: factors of the rates after a step that was taken, [P]."""
    turned = now.slope * new.slope < 0
    slow = np.abs(new.slope) > _SLOW * np.abs(now.slope)
    return np.where(turned, _SHORTER, np.where(slow, _MORE, 1.0))
