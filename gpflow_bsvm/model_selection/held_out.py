r"""A choice between models, such as penalties, by the density of rows that they have not seen.

The evidence cannot choose a penalty: the hinge is not normalised, and with its normaliser it says
how noisy labels are, not what predicts best. Nor can leave-one-out marginals, which leave out
neither what a datum did to the hyperparameters nor, at large penalties, what it did to the sites of
the others. Refitting q without a fold of the rows is honest, and cheap where it matters: on few
rows. On many a part of them is enough. (To learn the kernel anew for each fold chooses no better.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from gpflow.base import AnyNDArray
from sklearn.model_selection import StratifiedKFold

from ..checks import check_whole
from ..data.checks import check_weights
from ..prediction.marginals import predict_log_density

#: Where a penalty is chosen from, and where the search starts.
PENALTIES = (1.0, 4.0, 16.0)
FIRST_PENALTY = 1.0
#: Folds of the rows; no more of them are looked at once so many rows have been predicted.
NUM_FOLDS = 3
ENOUGH_ROWS = 1000

T = TypeVar("T")

#: X [N, D], Y [N, 1] and weights [N] -> a fitted model.
Fit = Callable[[AnyNDArray, AnyNDArray, AnyNDArray], Any]


class HeldOut(NamedTuple):
    """What models said of rows that they had not seen, row by row."""

    log_density: AnyNDArray  #: [n], log p(y_n | rows of the other folds)
    weight: AnyNDArray  #: [n]

    @property
    def mean(self) -> float:
        """:return: in nats per row (of weight 1); greater is better."""
        return float(self.weight @ self.log_density / self.weight.sum())

    def beats(self, other: HeldOut) -> bool:
        """
        :param other: of the same rows.
        :return: whether the mean is greater by more than the standard error of the difference.
        """
        difference = self.log_density - other.log_density
        gain = self.weight @ difference / self.weight.sum()
        squares = np.square(self.weight * (difference - gain))
        return bool(gain > np.sqrt(squares.sum()) / self.weight.sum())


def held_out(
    fit: Fit,
    data: tuple[AnyNDArray, AnyNDArray],
    *,
    sample_weight: Any = None,
    num_folds: int = NUM_FOLDS,
    enough_rows: int = ENOUGH_ROWS,
    seed: int = 0,
) -> HeldOut:
    """
    log p(y_n | rows of the other folds), folds stratified by class.

    Folds do not depend on the order of the rows, and equal rows are never separated.

    :param fit: is called with the rows of all folds but one.
    :param data: X [N, D] and Y [N, 1], discrete labels.
    :param sample_weight: [N], ones if None.
    :param enough_rows: leave out no further fold once so many rows have been predicted.
    :param seed: of the folds.
    :return: of the rows that were left out.
    :raise ValueError: if a class has fewer distinct rows than there are folds, or `num_folds` is
        less than 2.
    """
    X, Y = data
    weight = check_weights(sample_weight, len(X))[:, 0]
    parts: list[tuple[AnyNDArray, AnyNDArray]] = []
    for train, test in _folds(X, Y, num_folds, seed):
        model = fit(X[train], Y[train], weight[train])
        parts.append((predict_log_density(model, (X[test], Y[test])), weight[test]))
        if sum(len(log_p) for log_p, _ in parts) >= enough_rows:
            break
    return HeldOut(*(np.concatenate(part) for part in zip(*parts)))


def held_out_density(fit: Fit, data: tuple[AnyNDArray, AnyNDArray], **options: Any) -> float:
    """
    The mean of `held_out`: a criterion for whatever is to be chosen.

    Arguments and errors as there.

    :return: in nats per row (of weight 1); greater is better.
    """
    return held_out(fit, data, **options).mean


def most_folds(data: tuple[AnyNDArray, AnyNDArray]) -> int:
    """:return: distinct rows of the rarest class."""
    distinct = np.unique(np.column_stack(data), axis=0)
    return int(np.unique(distinct[:, -1], return_counts=True)[1].min())


def _folds(
    X: AnyNDArray, Y: AnyNDArray, num_folds: int, seed: int
) -> list[tuple[AnyNDArray, AnyNDArray]]:
    check_whole(2, num_folds=num_folds)
    most = most_folds((X, Y))
    if most < num_folds:
        raise ValueError(
            f"{num_folds} folds need that many distinct rows of every class, and one has {most}"
        )
    distinct, member = np.unique(np.column_stack([X, Y]), axis=0, return_inverse=True)
    folds = StratifiedKFold(num_folds, shuffle=True, random_state=seed)
    splits = folds.split(distinct, distinct[:, -1])
    tests = [np.isin(member.reshape(-1), test) for _, test in splits]
    return [(np.flatnonzero(~test), np.flatnonzero(test)) for test in tests]


def find_peak(score: Callable[[T], Any], values: Sequence[T], start: T) -> T:
    """
    The best of some ordered values, if there is but one peak: up from `start` as long as the score
    rises, else down.

    :param score: a number, or what else has `beats`, such as `HeldOut`.
    :param start: one of `values`.
    """
    best, best_score = values.index(start), score(start)
    for way in (1, -1):
        first = best
        while 0 <= best + way < len(values):
            new = score(values[best + way])
            if not (new.beats(best_score) if hasattr(new, "beats") else new > best_score):
                break
            best, best_score = best + way, new
        if best != first:
            break
    return values[best]
