"""Candidates for loss and penalty, and the search for the best one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..model_selection import held_out
from ..model_selection.densities import HeldOut
from .specification import LOSSES, NUM_LEVELS

#: The other loss is tried if the first loss, at its steepest, is at most this many standard errors
#: worse than at its best. This saves time where classes overlap.
NO_WORSE = 1.0


class Candidate(NamedTuple):
    """
    A loss and its penalty.

    :ivar learned: whether the kernel is learned; if not, it is at the medians of its priors.
    """

    loss: str
    penalty: float
    learned: bool = True


#: Candidates from soft to sharp. Levels estimate probabilities; steep hinges suit separate classes.
HINGES = tuple(Candidate("hinge", penalty) for penalty in held_out.PENALTIES)
LEVEL_PENALTIES = (1.0, 2.0, 8.0, 32.0)


def candidates(
    loss: str, penalty: float | str, linear: bool, num_levels: int = NUM_LEVELS
) -> tuple[Candidate, ...]:
    """:return: candidates from soft to sharp; for loss="auto" and a linear f, only hinges."""
    losses = ("hinge",) if loss == "auto" and linear else LOSSES if loss == "auto" else (loss,)
    if penalty != "auto":
        return tuple(Candidate(loss, float(penalty)) for loss in reversed(losses))
    part = num_levels / NUM_LEVELS
    levels = tuple(Candidate("levels", _short(part * slope)) for slope in LEVEL_PENALTIES)
    if len(losses) > 1:
        return (*levels, HINGES[-1], HINGES[-1]._replace(learned=False))
    return levels if losses == ("levels",) else HINGES


def first_of(among: Sequence[Candidate]) -> Candidate:
    """
    :return: the candidate to try first, which learns the kernel: the second penalty of the first
        loss. With the softest penalty, f would be too smooth.
    """
    softest, *others = (one for one in among if one.loss == among[0].loss)
    return others[0] if others else softest


def _short(penalty: float) -> float:
    return float(f"{penalty:.3g}")


def interpolated(among: Sequence[Candidate], place: float) -> Candidate:
    """:return: the candidate at a fractional place among candidates of one loss."""
    low = among[int(place)]
    high = among[math.ceil(place)]
    penalty = low.penalty * (high.penalty / low.penalty) ** (place % 1)
    return Candidate(low.loss, _short(penalty))


def best_of(
    score: Callable[[Candidate], HeldOut], among: Sequence[Candidate], first: Candidate
) -> Candidate:
    """
    :return: the best penalty of the first loss, as in `held_out.find_peak`; or a candidate with
        another loss that is worth it (`HeldOut.is_worth`). This is only tried if the search reached
        the steepest penalty, and `NO_WORSE` allows it.
    """
    tried: dict[Candidate, HeldOut] = {}

    def look(candidate: Candidate) -> HeldOut:
        tried[candidate] = score(candidate)
        return tried[candidate]

    same_loss = [one for one in among if one.loss == first.loss]
    place = held_out.find_peak(look, same_loss, first)
    best = interpolated(same_loss, place)
    leader = tried[same_loss[round(place)]]
    steepest = same_loss[-1]
    if steepest not in tried or tried[steepest].lead(leader) < -NO_WORSE:
        return best
    for other in among[len(same_loss) :]:
        found = score(other)
        if found.is_worth(leader):
            best = other
            leader = found
    return best
