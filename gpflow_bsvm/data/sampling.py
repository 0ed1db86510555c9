"""Some rows of a source, drawn at random."""

from __future__ import annotations

import zlib
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from .batch import Batch, take
from .passes import sum_over
from .sources import ArraySource, Source


def random_rows(num_rows: int, number: int, seed: Any) -> AnyNDArray:
    """
    :param seed: or a generator of NumPy.
    :return: [min(number, num_rows)], numbers of rows without repetition, each as likely as any
        other; all in their order if there are no more.
    """
    if num_rows <= number:
        return np.arange(num_rows)
    return np.random.default_rng(seed).choice(num_rows, number, replace=False)


def random_keys(batch: Batch, seed: int) -> AnyNDArray:
    """
    :return: [N], numbers in [0, 1): the rows of the smallest are a sample. They follow from the
        seed and the rows together, wherever and in whatever order chunks are looked at.
    """
    marks = [zlib.crc32(np.asarray(column).tobytes()) for column in (batch.X, batch.Y)]
    return np.random.default_rng([seed, *marks]).random(len(batch.Y))


def sample(source: Source, number: int, seed: int) -> ArraySource:
    """
    :param source: of more rows than `number`, which is known.
    :return: so many of its rows without repetition, each as likely as any other; for rows that can
        only be read in their order by a pass.
    """
    if source.indexed:
        index = np.sort(random_rows(source.num_rows, number, seed))
        if isinstance(source, ArraySource):
            return source.part(index)
        rows, where = source.gather(index)
        return _in_memory(take(rows, where))
    found: _Kept = sum_over(source, partial(_keyed, seed), add=partial(_smallest, number))
    return _in_memory(_least(number, found).rows)  # also where there was one chunk


class _Kept(NamedTuple):
    keys: AnyNDArray
    rows: Batch


def _keyed(seed: int, batch: Batch) -> _Kept:
    return _Kept(random_keys(batch, seed), batch)


def _smallest(number: int, one: _Kept, other: _Kept) -> _Kept:
    rows = Batch(*(tf.concat(columns, 0) for columns in zip(one.rows, other.rows)))
    return _least(number, _Kept(np.concatenate([one.keys, other.keys]), rows))


def _least(number: int, kept: _Kept) -> _Kept:
    best = np.sort(np.argsort(kept.keys)[:number])
    return _Kept(kept.keys[best], take(kept.rows, best))


def _in_memory(batch: Batch) -> ArraySource:
    X, Y, weight = (np.asarray(column) for column in batch)
    return ArraySource(X, Y, weight, len(Y))
