"""Random rows of a source: samples and minibatches."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Generator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray

from .batch import Batch, joined, take
from .passes import sum_over
from .sources import ArraySource, Source, closed_at_end

Columns = tuple[AnyNDArray, ...]


def random_rows(num_rows: int, number: int, seed: Any) -> AnyNDArray:
    """
    :return: [min(number, num_rows)], indices of random rows without repetition; all, in order, if
        there are at most `number` rows.
    """
    if num_rows <= number:
        return np.arange(num_rows)
    return np.random.default_rng(seed).choice(num_rows, number, replace=False)


def random_keys(batch: Batch, seed: int) -> AnyNDArray:
    """
    :return: [N], random keys in [0, 1): rows with the smallest keys are a sample. Keys depend only
        on seed and rows, not on where and in which order chunks are read.
    """
    marks = [zlib.crc32(np.asarray(column).tobytes()) for column in (batch.X, batch.Y)]
    return np.random.default_rng([seed, *marks]).random(len(batch.Y))


def sample(source: Source, number: int, seed: int) -> ArraySource:
    """
    :return: a random sample of `number` rows (fewer than the source has) without repetition; this
        takes a pass if rows can only be read in order.
    """
    if isinstance(source, ArraySource):
        return source.part(np.sort(random_rows(source.num_rows, number, seed)))
    if source.indexed:
        rows, index = source.gather(np.sort(random_rows(source.num_rows, number, seed)))
        X, Y, weight = map(np.asarray, take(rows, index))
    else:
        drawn = partial(_drawn, number, seed)
        found = sum_over(source, drawn, add=partial(_merged, number))
        _, X, Y, weight = map(np.asarray, found)  # clusters return tensors
    return ArraySource(X, Y, weight, source.chunk_rows or number)


def _drawn(number: int, seed: int, batch: Batch) -> Columns:
    return _smallest(number, (random_keys(batch, seed), *map(np.asarray, batch)))


def _merged(number: int, one: Columns, other: Columns) -> Columns:
    return _smallest(number, tuple(map(np.concatenate, zip(one, other))))


def _smallest(number: int, columns: Columns) -> Columns:
    """:return: the rows with the smallest keys; the first column holds the keys."""
    best = np.sort(np.argsort(columns[0])[:number])
    return tuple(column[best] for column in columns)


class BatchGroup(NamedTuple):
    """Consecutive minibatches of equal size."""

    rows: Any  #: rows (projected or not) that include the minibatches
    index: AnyNDArray  #: [T, B], indices of minibatches into these rows
    position: int  #: start of the next group

    def first(self, number: int, begin: int) -> BatchGroup:
        """:return: at most `number` minibatches of this group, which starts at `begin`."""
        index = self.index[:number]
        position = begin + (self.position - begin) * len(index) // len(self.index)
        return BatchGroup(self.rows, index, position)


def batch_groups(
    data: Source,
    batch_size: int,
    num_batches: int,
    seed: int,
    position: int = 0,
    most_rows: float = math.inf,
) -> Generator[BatchGroup, None, None]:
    """
    :param batch_size: B, at most the number of rows; ignored for a `tf.data.Dataset`.
    :param num_batches: the largest number of minibatches per group.
    :param seed: each epoch is a new permutation of the rows.
    :param position: 0, or the end of the previous group.
    :param most_rows: the largest number of rows per group, unless a single minibatch has more.
    :return: an endless iterator of groups.
    """
    if data.indexed:
        number = max(1, int(min(num_batches, most_rows / batch_size)))
        return _in_order(data, min(batch_size, data.num_rows), number, seed, position)
    return _as_they_come(data, batch_size, num_batches, position, most_rows)


def _in_order(
    data: Source, batch_size: int, num_batches: int, seed: int, position: int
) -> Generator[BatchGroup, None, None]:
    @functools.lru_cache(maxsize=2)
    def permutation(epoch: int) -> AnyNDArray:
        return np.random.default_rng([seed, epoch]).permutation(data.num_rows)

    while True:
        end = position + batch_size * num_batches
        numbers = []
        for epoch in range(position // data.num_rows, -(-end // data.num_rows)):
            start = epoch * data.num_rows
            numbers.append(permutation(epoch)[max(0, position - start) : end - start])
        rows, index = data.gather(np.concatenate(numbers).reshape(num_batches, batch_size))
        position = end
        yield BatchGroup(rows, index, position)


def _as_they_come(
    data: Source, batch_size: int, num_batches: int, position: int, most_rows: float
) -> Generator[BatchGroup, None, None]:
    group: list[Batch] = []
    with closed_at_end(data.stream(position, batch_size)) as batches:
        for batch in batches:
            group.append(batch)
            if len(group) == num_batches or (len(group) + 1) * len(batch.Y) > most_rows:
                position += len(group)
                rows = joined(group)
                index = np.arange(len(rows.Y)).reshape(len(group), -1)
                yield BatchGroup(data.project(rows), index, position)
                group = []
