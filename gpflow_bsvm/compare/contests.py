"""The best model on a data set, and the others that cannot be told apart from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from scipy import stats

from ..metrics import CLIP, METRICS
from .protocol import Comparison

#: Level of all intervals.
LEVEL = 0.95


#: Those of `METRICS` that are means over rows, with the loss of each row, [N].
ROW_LOSSES: dict[str, Callable[[AnyNDArray, AnyNDArray], AnyNDArray]] = {
    "error": lambda y, P: (P.argmax(axis=1) != y).astype(float),
    "brier": lambda y, P: np.square(P - np.eye(P.shape[1])[y]).sum(axis=1) / 2,
    "nll": lambda y, P: -np.log(np.clip(P[np.arange(len(y)), y], CLIP, 1 - CLIP)),
}


class Interval(NamedTuple):
    """A mean over rows, and its confidence interval."""

    mean: float
    low: float
    high: float

    @property
    def has_zero(self) -> bool:
        """:return: True if the interval of a difference contains 0."""
        return self.low <= 0 <= self.high


@dataclass(frozen=True)
class Contest:
    """
    Models compared on the same held-out rows in one score, the best first.

    :ivar score: of `ROW_LOSSES`.
    :ivar num_rows: number of rows that all of them predicted.
    :ivar losses: mean loss by model, with an interval of 95 %.
    :ivar behind: for each other model the mean over rows of its loss minus that of the best. The
        interval is Student's paired t, of level 1 - 0.05 / (k - 1) for k models, so that all k - 1
        hold together with 95 % (Bonferroni).
    """

    score: str
    num_rows: int
    losses: dict[str, Interval]
    behind: dict[str, Interval]

    @property
    def best(self) -> str:
        """:return: the model with the least mean."""
        return next(iter(self.losses))

    @property
    def level(self) -> list[str]:
        """:return: the best, and those that cannot be told apart from it."""
        return [self.best, *(name for name, lost in self.behind.items() if lost.has_zero)]


def contest(comparison: Comparison, score: str) -> Contest | None:
    """
    Find the best model. Rows are held-out rows, and models are taken as trained: the intervals do
    not contain the variation over training sets. Only the models with predictions for the most
    folds take part, on the folds that they all share.

    :param score: of `ROW_LOSSES`.
    :return: the contest, None if no model has predictions.
    """
    folds = _in_common(comparison)
    if not folds:
        return None
    loss = ROW_LOSSES[score]
    rows = {name: np.concatenate([loss(*fold) for fold in own]) for name, own in folds.items()}
    order = sorted(rows, key=lambda name: float(rows[name].mean()))
    best, others = order[0], order[1:]
    level = 1 - (1 - LEVEL) / max(1, len(others))
    return Contest(
        score,
        len(rows[best]),
        {name: _interval(rows[name], LEVEL) for name in order},
        {name: _interval(rows[name] - rows[best], level) for name in others},
    )


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


def leaders(
    comparison: Comparison, means: Mapping[str, Mapping[str, float]]
) -> dict[str, set[str]]:
    """
    :param means: by score of `METRICS` and by model.
    :return: the best model by score, and those that cannot be told apart from it: by `contest`
        where the score is a mean over rows, else those whose mean is the same in three digits.
    """
    found = {}
    for score, of_models in means.items():
        sign = -1 if METRICS[score].greater_is_better else 1
        rounded = {name: sign * round(mean, 3) for name, mean in of_models.items()}
        held = contest(comparison, score) if score in ROW_LOSSES else None
        least = {name for name, value in rounded.items() if value == min(rounded.values())}
        found[score] = set(held.level) if held else least
    return found
