r"""Batches of rows whose labels would tell most of f.

Rows that are alike tell the same. With y_1..y_B the labels of a batch of rows, in nats,

    joint mutual information   I(y_1..y_B; f) = H[E_q p(y_1..y_B | f)] - E_q sum_b H[p(y_b | f)],

which is made large row by row (Kirsch, van Amersfoort & Gal 2019). That reaches 1 - 1/e of the best
batch's at least, as no row adds more to a batch than to a part of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from scipy.special import entr

from ..checks import check_whole
from ..engine.contracts import Model
from ..prediction.estimators import takes_estimators
from ..prediction.joint import draw_probabilities
from ..prediction.uncertainty import mutual_information

#: Draws of f by which most rows are dismissed; the ten best of 1068 digits stay by half as many.
SCREENING = 16
#: Rows that are left: so many for each of a batch, and at least so many.
PER_ROW, FEWEST = 10, 100
#: Combinations of labels that are told apart: all there are up to this number, else a sample.
MOST_LABELS = 1024


class Found(NamedTuple):
    """Rows of a batch."""

    index: AnyNDArray  #: [B], in the order in which they were found
    information: AnyNDArray  #: [B], joint mutual information of the first b of them


@takes_estimators
def batch_bald(
    model: Model,
    X: Any,
    batch_size: int,
    *,
    num_samples: int = 256,
    seed: int = 0,
    num_candidates: int | None = None,
) -> Found:
    """
    One row after the other, each the one that adds most to the joint mutual information of those
    before.

    :param X: [N, D].
    :param batch_size: B, at most N.
    :param num_samples: joint draws S of f: information beyond log S cannot be seen.
    :param seed: of the draws, and of the sample of labels where there are more than `MOST_LABELS`
        combinations of them.
    :param num_candidates: so many rows are looked at, those of the largest `mutual_information` by
        `SCREENING` draws: what a row adds is never more than that. None: ten times the batch, 100
        at least.
    :raise ValueError: as `gpflow_bsvm.prediction.draw_f`, if rows have several binary labels, and
        for a batch larger than the rows or the candidates.
    """
    check_whole(1, batch_size=batch_size)
    usual = max(FEWEST, PER_ROW * batch_size)
    number = usual if num_candidates is None else num_candidates
    check_whole(1, num_candidates=number)
    if batch_size > min(len(X), number):
        raise ValueError(
            f"batch_size is {batch_size}, and there are {min(len(X), number)} rows to choose from"
        )
    candidates = screened(model, X, number, seed=seed)
    part = np.asarray(X)[candidates]
    P = draw_probabilities(model, part, num_samples=num_samples, seed=seed)
    index, information = greedy_batch(P, batch_size, seed=seed)
    return Found(candidates[index], information)


def screened(model: Model, X: Any, number: int, *, seed: int = 0) -> AnyNDArray:
    """
    :return: rows of the largest `mutual_information` by `SCREENING` draws, rising; all, if there
        are no more than `number`.
    """
    if len(X) <= number:
        return np.arange(len(X))
    each = mutual_information(model, X, num_samples=SCREENING, seed=seed)
    return np.sort(np.argsort(-each, kind="stable")[:number])


def greedy_batch(P: AnyNDArray, batch_size: int, *, seed: int = 0) -> Found:
    """
    `batch_bald` of probabilities under joint draws of f.

    :param P: [S, N, C], p(y_n = c | f_s).
    """
    known, random = entr(P).sum(axis=2).mean(axis=0), np.random.default_rng(seed)
    labels, chosen, gains = _Labels.of_no_rows(len(P)), list[int](), list[float]()
    for _ in range(batch_size):
        gain = labels.entropy(P) - known
        gain[chosen] = -np.inf
        chosen.append(int(gain.argmax()))
        gains.append(float(gain[chosen[-1]]))
        labels = labels.and_row(P[:, chosen[-1]], random)
    return Found(np.array(chosen), np.cumsum(gains))


def joint_mutual_information(P: AnyNDArray, *, seed: int = 0) -> float:
    """
    :param P: [S, B, C], p(y_b = c | f_s) of a batch of rows under joint draws of f, see
        `gpflow_bsvm.prediction.draw_probabilities`.
    :param seed: see `batch_bald`.
    :return: I(y_1..y_B; f), in nats; exact for these draws up to `MOST_LABELS` combinations.
    """
    labels, random = _Labels.of_no_rows(len(P)), np.random.default_rng(seed)
    total = -float(entr(P).sum(axis=(1, 2)).mean())
    for b in range(P.shape[1]):
        total += float(labels.entropy(P[:, b : b + 1])[0])
        labels = labels.and_row(P[:, b], random)
    return total


class _Labels(NamedTuple):
    """Combinations of labels of the rows so far."""

    weight: AnyNDArray  #: [J], their probabilities
    draws: AnyNDArray  #: [J, S], the probability of each draw given the labels

    @classmethod
    def of_no_rows(cls, num_samples: int) -> _Labels:
        return cls(np.ones(1), np.full((1, num_samples), 1 / num_samples))

    def entropy(self, P: AnyNDArray) -> AnyNDArray:
        """:return: [N], H(y_n | the labels so far), of P as in `greedy_batch`."""
        S, N, C = P.shape
        p = (self.draws @ P.reshape(S, -1)).reshape(-1, N, C)
        return np.asarray(self.weight @ entr(p).sum(axis=2))

    def and_row(self, p: AnyNDArray, random: np.random.Generator) -> _Labels:
        """
        :param p: [S, C].
        :return: the information of one row more.
        """
        both = self.draws[:, None] * p.T
        each = both.sum(axis=2).reshape(-1)
        weight = (self.weight[:, None] * both.sum(axis=2)).reshape(-1)
        kept = np.flatnonzero(weight > 0)
        if len(kept) > MOST_LABELS:  # systematic resampling: each counts the same then
            ends, places = np.cumsum(weight[kept]), np.arange(MOST_LABELS) + random.random()
            kept = kept[np.searchsorted(ends, places * (ends[-1] / MOST_LABELS))]
            weight[:] = 1
        draws = both.reshape(len(weight), -1)[kept] / each[kept, None]
        return _Labels(weight[kept] / weight[kept].sum(), draws)
