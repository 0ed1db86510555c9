"""Gradient ascent with a rate for each parameter, which looks at gradients alone (Gold & Sollich
2003, section 4.3)."""

from __future__ import annotations

import numpy as np
from gpflow.base import AnyNDArray

from .search import Ending, Look, Search

#: First step of each parameter, and the longest of all, in logarithms.
_FIRST, _LONGEST = 0.2, 1.0
#: No first rate is larger than that of a slope of this share of the largest.
_FLAT = 1e-2
#: A gradient has increased sharply that is so many times as long; has not declined quickly that is
#: still so long; and has turned sharply that is so long in the other direction.
_SHARP, _SLOW, _TURNED = 2.0, 0.8, 0.5
#: A change is none that is within this share of the longest gradient of all parameters: one that
#: was next to nothing increases as the others move.
_SHARE = 0.2
#: What becomes of a rate: after a step that is discarded because of it, or of another (whose
#: gradient its own step may have changed), that was too small, or a bit too long.
_LESS, _OTHERS, _MORE, _SHORTER = 0.4, 0.7, 1.5, 0.7
#: The ascent ends where gradients are so small beside their peaks, or as such, or within so many
#: standard errors; or where no step is longer than this.
_SMALL, _NOTHING, _NOISE, _SHORT = 0.02, 1e-5, 2.0, 1e-4


def ascend(search: Search, x: AnyNDArray, bounds: AnyNDArray, most: int) -> Ending:
    """
    A step is discarded, and the rates that are to blame decrease, where a parameter's gradient
    increases sharply or turns round (for a vector of them: its direction), beyond what its standard
    error explains, or where the criterion, if it has values, is worse. Rates of gradients that do
    not decline quickly increase. Accepted places are kept.

    :param bounds: [P, 2], which steps do not leave.
    :param most: gradients.
    """
    now, scale = _inside(search.look(x), bounds), search.scale(x)
    groups = [part.reshape(-1) for part in search.split(np.arange(len(x))).values()]
    search.keep(now.x, now.cost, now.slope)
    rates = _first_rates(now, groups, scale)
    peaks = [_length(now.slope, group) for group in groups]
    for evaluations in range(1, most + 1):
        if _is_done(now, groups, peaks):
            return Ending(now.x, evaluations, bool(np.isfinite(now.error).all()))
        step = np.clip(-rates * now.slope, -_LONGEST * scale, _LONGEST * scale)
        target = np.clip(now.x + step, bounds[:, 0], bounds[:, 1])
        if (np.abs(target - now.x) < _SHORT * scale).all():
            return Ending(now.x, evaluations, True)
        if evaluations == most:
            break
        new = _try(search, target, bounds)
        blamed = _blamed(now, new, groups)
        if blamed:
            rates *= _OTHERS
        for group in blamed:
            rates[group] *= _LESS / _OTHERS
        if new is not None and not blamed:
            _adapt(rates, now, new, groups)
            peaks = [max(peak, _length(new.slope, g)) for peak, g in zip(peaks, groups)]
            now = new
            search.keep(now.x, now.cost, now.slope)
    return Ending(now.x, most, False)


def _try(search: Search, x: AnyNDArray, bounds: AnyNDArray) -> Look | None:
    """:return: None where the kernel overflows."""
    try:
        return _inside(search.look(x), bounds)
    except ValueError:
        return None


def _inside(look: Look, bounds: AnyNDArray) -> Look:
    """:return: without slopes that lead out of the bounds."""
    low, high = (look.x <= bounds[:, 0]), (look.x >= bounds[:, 1])
    leads_out = (low & (look.slope > 0)) | (high & (look.slope < 0))
    return look._replace(slope=np.where(leads_out, 0.0, look.slope))


def _length(vector: AnyNDArray, group: AnyNDArray) -> float:
    return float(np.linalg.norm(vector[group]))


def _first_rates(now: Look, groups: list[AnyNDArray], scale: AnyNDArray) -> AnyNDArray:
    """:return: such that each parameter's first step is `_FIRST` long, or less where it is flat."""
    longest, rates = np.abs(now.slope * scale).max(), np.zeros_like(now.slope)
    for group in groups:
        length = _length(now.slope * scale, group)
        noise = _length(np.where(np.isfinite(now.error), now.error, 0) * scale, group)
        floor = max(length, _NOISE * noise, _FLAT * longest, np.finfo(float).tiny)
        rates[group] = _FIRST * scale[group] ** 2 / floor
    return rates


def _is_done(now: Look, groups: list[AnyNDArray], peaks: list[float]) -> bool:
    def small(group: AnyNDArray, peak: float) -> bool:
        noise = _NOISE * _length(now.error, group)
        return _length(now.slope, group) <= max(_SMALL * peak, _NOTHING, noise)

    return all(small(group, peak) for group, peak in zip(groups, peaks))


def _blamed(now: Look, new: Look | None, groups: list[AnyNDArray]) -> list[AnyNDArray]:
    """:return: groups whose step was too long; all of them if the criterion is worse."""
    if new is None or new.cost > now.cost:
        return groups
    return [group for group in groups if _is_sharp(now, new, group)]


def _is_sharp(now: Look, new: Look, group: AnyNDArray) -> bool:
    before, after = (_length(look.slope, group) for look in (now, new))
    noise = _NOISE * _length(np.hypot(now.error, new.error), group)
    turned = float(now.slope[group] @ new.slope[group]) < 0
    slack = max(noise, _SHARE * float(np.abs(now.slope).max()))
    return after > (_TURNED if turned else _SHARP) * before + slack


def _adapt(rates: AnyNDArray, now: Look, new: Look, groups: list[AnyNDArray]) -> None:
    for group in groups:
        before, after = (_length(look.slope, group) for look in (now, new))
        if float(now.slope[group] @ new.slope[group]) < 0:
            rates[group] *= _SHORTER
        elif after > _SLOW * before:
            rates[group] *= _MORE
