"""Pairwise tests of models on a data set, the basis of all stars and verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from scipy import stats

from ..metrics import Loss
from .protocol import Comparison, Held

#: Level of all intervals.
LEVEL = 0.95


class Interval(NamedTuple):
    """A mean over rows, and its confidence interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Contest:
    """
    Models in order of mean loss, compared by one score on the same held-out rows.

    :ivar score: a name in `Comparison.losses`.
    :ivar num_rows: number of rows that all models predict.
    :ivar losses: mean loss of each model, with a 95 % interval.
    :ivar behind: for each pair (model, other), the mean over rows of the model's loss minus the
        other model's loss. The paired t intervals have level 1 - 0.05 / P for P pairs, so that all
        together hold with 95 % (Bonferroni).
    """

    score: str
    num_rows: int
    losses: dict[str, Interval]
    behind: dict[tuple[str, str], Interval]

    @property
    def best(self) -> str:
        """:return: the model with the least mean loss."""
        return next(iter(self.losses))

    def verdict(self, model: str, other: str) -> str:
        """:return: "better" or "worse" if the pair's interval excludes 0, else "level"."""
        lost = self.behind[model, other]
        return "worse" if lost.low > 0 else "better" if lost.high < 0 else "level"

    def better(self, model: str) -> list[str]:
        """:return: all models better than this one."""
        return [one for one in self.losses if one != model and self.verdict(model, one) == "worse"]

    @property
    def leaders(self) -> list[str]:
        """:return: the models that no model beats, including the best."""
        return [name for name in self.losses if not self.better(name)]


def contests(comparison: Comparison) -> list[Contest]:
    """
    Compare all pairs of models on held-out rows. The intervals ignore the variation over training
    sets. Only models with predictions for the largest number of folds take part, on the folds that
    all of them share.

    :return: a contest for each score; empty if no model has predictions.
    """
    folds = _in_common(comparison)
    losses = comparison.losses.items()
    return [_contest(score, loss, folds) for score, loss in losses] if folds else []


def _contest(score: str, loss: Loss, folds: dict[str, list[Held]]) -> Contest:
    rows = {name: np.concatenate([loss(y, P) for y, P in own]) for name, own in folds.items()}
    means = {name: float(own.mean()) for name, own in rows.items()}
    order = sorted(rows, key=means.__getitem__)
    pairs = list(permutations(order, 2))
    level = 1 - (1 - LEVEL) / max(1, len(pairs) // 2)
    return Contest(
        score,
        len(rows[order[0]]),
        {name: _interval(rows[name], LEVEL) for name in order},
        {(one, other): _interval(rows[one] - rows[other], level) for one, other in pairs},
    )


def _in_common(comparison: Comparison) -> dict[str, list[Held]]:
    """:return: labels and predictions on the shared folds, for models with the most folds."""
    most = max(map(len, comparison.held_out.values()), default=0)
    full = {name: found for name, found in comparison.held_out.items() if len(found) == most}
    numbers = range(comparison.settings.folds)
    shared = [k for k in numbers if all(k in found for found in full.values())]
    return {name: [found[k] for k in shared] for name, found in full.items() if shared}


def _interval(values: AnyNDArray, level: float) -> Interval:
    """:return: Student's t interval; if all values are equal, only their mean."""
    mean = float(values.mean())
    if len(values) < 2 or not np.ptp(values):
        return Interval(mean, mean, mean)
    low, high = stats.ttest_1samp(values, 0).confidence_interval(level)
    return Interval(mean, float(low), float(high))
