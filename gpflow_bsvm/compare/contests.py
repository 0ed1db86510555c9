"""Who is better than whom on a data set: the verdicts behind all stars and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from scipy import stats

from .protocol import Comparison

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
    Models compared on the same held-out rows in one score, that of least mean loss first.

    :ivar score: a name in the losses of the comparison's kind.
    :ivar num_rows: number of rows that all of them predicted.
    :ivar losses: mean loss by model, with an interval of 95 %.
    :ivar behind: mean over rows of a model's loss minus that of another, for each pair (model,
        other). The interval is Student's paired t, of level 1 - 0.05 / P for P pairs, so that all
        of them hold together with 95 % (Bonferroni).
    """

    score: str
    num_rows: int
    losses: dict[str, Interval]
    behind: dict[tuple[str, str], Interval]

    @property
    def best(self) -> str:
        """:return: the model with the least mean."""
        return next(iter(self.losses))

    def verdict(self, model: str, other: str) -> str:
        """:return: "better", "worse" or "level": whether the pair's interval leaves out 0."""
        lost = self.behind[model, other]
        return "worse" if lost.low > 0 else "better" if lost.high < 0 else "level"

    def better(self, model: str) -> list[str]:
        """:return: all that are better than the model."""
        return [one for one in self.losses if one != model and self.verdict(model, one) == "worse"]

    @property
    def leaders(self) -> list[str]:
        """:return: the models than which none is better, the best among them."""
        return [name for name in self.losses if not self.better(name)]


def contest(comparison: Comparison, score: str) -> Contest | None:
    """
    Compare all pairs of models. Rows are held-out rows, and models are taken as trained: the
    intervals do not contain the variation over training sets. Only the models with predictions for
    the most folds take part, on the folds that they all share.

    :param score: a name in `comparison.kind.losses`.
    :return: the contest, None if no model has predictions.
    """
    folds = _in_common(comparison)
    if not folds:
        return None
    loss = comparison.kind.losses[score]
    rows = {name: np.concatenate([loss(*fold) for fold in own]) for name, own in folds.items()}
    order = sorted(rows, key=lambda name: float(rows[name].mean()))
    pairs = list(permutations(order, 2))
    level = 1 - (1 - LEVEL) / max(1, len(pairs) // 2)
    return Contest(
        score,
        len(rows[order[0]]),
        {name: _interval(rows[name], LEVEL) for name in order},
        {(one, other): _interval(rows[one] - rows[other], level) for one, other in pairs},
    )


def contests(comparison: Comparison) -> list[Contest]:
    """:return: contests of all scores; none if no model has predictions."""
    found = [contest(comparison, score) for score in comparison.kind.losses]
    return [held for held in found if held is not None]


def _in_common(comparison: Comparison) -> dict[str, list[tuple[AnyNDArray, AnyNDArray]]]:
    """:return: labels and predictions of the folds in common, of models that have the most."""
    most = max(map(len, comparison.held_out.values()), default=0)
    full = {name: found for name, found in comparison.held_out.items() if len(found) == most}
    shared = set.intersection(*map(set, full.values())) if full else set[int]()
    return {name: [found[k] for k in sorted(shared)] for name, found in full.items() if shared}


def _interval(values: AnyNDArray, level: float) -> Interval:
    """:return: the interval of Student's t; for equal values just the mean."""
    mean = float(values.mean())
    if len(values) < 2 or not np.ptp(values):
        return Interval(mean, mean, mean)
    low, high = stats.ttest_1samp(values, 0).confidence_interval(level)
    return Interval(mean, float(low), float(high))
