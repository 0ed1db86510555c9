"""Random rows of a source."""

from __future__ import annotations

import zlib
from functools import partial
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from .batch import Batch, take
from .passes import sum_over
from .sources import ArraySource, Source

Columns = tuple[AnyNDArray, ...]


def random_rows(num_rows: int, number: int, seed: Any) -> AnyNDArray:
    """
    :param seed: a seed or a NumPy generator.
    :return: [min(number, num_rows)], indices of random rows without repetition; all in order if
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
    :param source: a source with a known number of rows, more than `number`.
    :return: a random sample of `number` rows without repetition; takes a pass if rows can only be
        read in order.
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
    return ArraySource(X, Y, weight, number)


def _drawn(number: int, seed: int, batch: Batch) -> Columns:
    return _smallest(number, (random_keys(batch, seed), *map(np.asarray, batch)))


def _merged(number: int, one: Columns, other: Columns) -> Columns:
    return _smallest(number, tuple(map(np.concatenate, zip(one, other))))


def _smallest(number: int, columns: Columns) -> Columns:
    """:return: the rows with the smallest keys; the first column holds the keys."""
    best = np.sort(np.argsort(columns[0])[:number])
    return tuple(column[best] for column in columns)
