"""Minibatches in an order that is known from a seed and a position, so that a fit can go on."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray

from .batch import Batch
from .sources import Source, joined


class Block(NamedTuple):
    """Consecutive minibatches of equal size."""

    rows: Any  #: that hold them, raw or projected
    index: AnyNDArray  #: [T, B], of minibatches into these rows
    position: int  #: where the next block begins

    def first(self, number: int, begin: int) -> Block:
        """
        :param begin: the position at which this block began.
        :return: no more than its first `number` minibatches.
        """
        whole, used = len(self.index), min(number, len(self.index))
        position = begin + (self.position - begin) * used // whole
        return Block(self.rows, self.index[:used], position)


def blocks(
    data: Source, batch_size: int, num_batches: int, seed: int, position: int = 0
) -> Iterator[Block]:
    """
    :param batch_size: B, no more than there are rows; a source without numbers brings its own.
    :param num_batches: most minibatches of a block.
    :param seed: of the order: each epoch is a fresh permutation of the rows.
    :param position: 0, or that of the block before.
    :return: blocks without end.
    """
    if data.indexed:
        return _in_order(data, min(batch_size, data.num_rows), num_batches, seed, position)
    return _as_they_come(data, num_batches, position)


def _in_order(
    data: Source, batch_size: int, num_batches: int, seed: int, position: int
) -> Iterator[Block]:
    permutation = functools.lru_cache(maxsize=2)(
        lambda epoch: np.random.default_rng([seed, epoch]).permutation(data.num_rows)
    )
    while True:
        end = position + batch_size * num_batches
        epochs = range(position // data.num_rows, -(-end // data.num_rows))
        numbers = np.concatenate([permutation(epoch) for epoch in epochs])
        start = position % data.num_rows
        index = numbers[start : start + end - position].reshape(num_batches, batch_size)
        position = end
        yield Block(*data.gather(index), position)


def _as_they_come(data: Source, num_batches: int, position: int) -> Iterator[Block]:
    group: list[Batch] = []
    for batch in data.stream(position):
        fits = not group or len(batch.Y) == len(group[0].Y)
        if fits:
            group.append(batch)
        if not fits or len(group) == num_batches:
            position += len(group)
            rows = joined(group)
            index = np.arange(len(rows.Y)).reshape(len(group), -1)
            yield Block(data.see(rows), index, position)
            group = [] if fits else [batch]
