"""A score of several models: a line for each, with its folds, its mean and an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Marks of single folds are this much of a line below the mean, where no bar covers them.
_BELOW = 0.22


def score_dots(
    ax: Axes,
    centres: Mapping[str, float],
    singles: Mapping[str, Sequence[float]] | None = None,
    intervals: Mapping[str, tuple[float, float]] | None = None,
    *,
    what: str = "score",
    colors: Mapping[str, str] | None = None,
) -> Axes:
    """
    A model on each line, from top to bottom: a large mark is its mean, small ones single folds, a
    bar an interval.

    :param centres: by model, in this order.
    :param singles: values of folds, by model.
    :param intervals: (low, high), by model.
    :param what: the score's name.
    :param colors: by model; None: those of Matplotlib, in turn.
    :raise ValueError: without models, or for singles and intervals of unknown ones.
    """
    singles, intervals = singles or {}, intervals or {}
    if not centres or {*singles, *intervals} - {*centres}:
        raise ValueError(f"expected models of {[*centres]}, got {[*singles]} and {[*intervals]}")
    for line, (name, centre) in enumerate(centres.items()):
        color = colors[name] if colors else f"C{line}"
        own = np.asarray(singles.get(name, []), float)
        ax.plot(
            own, np.full(len(own), line + _BELOW), "o", color=color, markersize=4, alpha=0.5, mew=0
        )
        if name in intervals:
            ax.plot(intervals[name], (line, line), color=color, linewidth=2.2)
        ax.plot(centre, line, "D", color=color, markersize=6)
    ax.set_yticks(range(len(centres)), list(centres))
    ax.set(ylim=(len(centres) - 0.4, -0.6), xlabel=what)
    ax.tick_params(axis="y", length=0)
    return ax
