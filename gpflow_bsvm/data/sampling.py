"""Random rows of a source."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from .batch import Batch, take
from .passes import sum_over
from .sources import ArraySource, Source


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
        some = take(*source.gather(np.sort(random_rows(source.num_rows, number, seed))))
        X, Y, weight = map(np.asarray, some)
    else:
        least = partial(_smallest, number)
        found = sum_over(source, partial(_keyed, seed), add=lambda *both: least(zip(*both)))
        _, X, Y, weight = least((column,) for column in found)  # needed for a single chunk
    return ArraySource(X, Y, weight, number)


def _keyed(seed: int, batch: Batch) -> tuple[AnyNDArray, ...]:
    return random_keys(batch, seed), *map(np.asarray, batch)


def _smallest(number: int, parts: Iterable[Sequence[AnyNDArray]]) -> tuple[AnyNDArray, ...]:
    """:return: the rows with the smallest keys; each part is a list of columns, keys first."""
    columns = list(map(np.concatenate, parts))
    best = np.sort(np.argsort(columns[0])[:number])
    return tuple(column[best] for column in columns)
