"""Minibatches; a seed and a position determine their order, so that fits can resume."""

from __future__ import annotations

import functools
from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray

from .batch import Batch, joined
from .prefetch import closed_at_end
from .sources import Source


class BatchGroup(NamedTuple):
    """Consecutive minibatches of equal size."""

    rows: Any  #: rows (raw or projected) that include the minibatches
    index: AnyNDArray  #: [T, B], indices of minibatches into these rows
    position: int  #: start of the next group

    def first(self, number: int, begin: int) -> BatchGroup:
        """
        :param begin: start of this group.
        :return: its first minibatches, at most `number`.
        """
        whole = len(self.index)
        used = min(number, len(self.index))
        position = begin + (self.position - begin) * used // whole
        return BatchGroup(self.rows, self.index[:used], position)


def batch_groups(
    data: Source, batch_size: int, num_batches: int, seed: int, position: int = 0
) -> Generator[BatchGroup, None, None]:
    """
    :param batch_size: B, at most the number of rows; ignored for a `tf.data.Dataset`.
    :param num_batches: the largest number of minibatches per group.
    :param seed: seed of the order; each epoch is a new permutation of the rows.
    :param position: 0, or the end of the previous group.
    :return: an endless iterator of groups.
    """
    if data.indexed:
        return _in_order(data, min(batch_size, data.num_rows), num_batches, seed, position)
    return _as_they_come(data, batch_size, num_batches, position)


def _in_order(
    data: Source, batch_size: int, num_batches: int, seed: int, position: int
) -> Generator[BatchGroup, None, None]:
    @functools.lru_cache(maxsize=2)
    def permutation(epoch: int) -> AnyNDArray:
        return np.random.default_rng([seed, epoch]).permutation(data.num_rows)

    while True:
        end = position + batch_size * num_batches
        epochs = range(position // data.num_rows, -(-end // data.num_rows))
        starts = [epoch * data.num_rows for epoch in epochs]
        numbers = [
            permutation(epoch)[max(0, position - start) : end - start]
            for epoch, start in zip(epochs, starts)
        ]
        rows, index = data.gather(np.concatenate(numbers).reshape(num_batches, batch_size))
        position = end
        yield BatchGroup(rows, index, position)


def _as_they_come(
    data: Source, batch_size: int, num_batches: int, position: int
) -> Generator[BatchGroup, None, None]:
    group: list[Batch] = []
    with closed_at_end(data.stream(position, batch_size)) as batches:
        for batch in batches:
            group.append(batch)
            if len(group) == num_batches:
                position += len(group)
                rows = joined(group)
                index = np.arange(len(rows.Y)).reshape(len(group), -1)
                yield BatchGroup(data.project(rows), index, position)
                group = []
