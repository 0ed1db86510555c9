"""Some rows of a source, drawn at random."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from .batch import Batch, take
from .passes import sum_over
from .sources import ArraySource, Source


def sample(source: Source, number: int, seed: int) -> ArraySource:
    """
    :param source: of more rows than `number`, which is known.
    :return: so many of its rows without repetition, each as likely as any other; for rows that can
        only be read in their order by a pass.
    """
    rng = np.random.default_rng(seed)
    if source.indexed:
        index = np.sort(rng.choice(source.num_rows, number, replace=False))
        if isinstance(source, ArraySource):
            return source.part(index)
        rows, where = source.gather(index)
        return _in_memory(take(rows, where))
    kept: list[tuple[AnyNDArray, Batch]] = []

    def look(batch: Batch) -> tf.Tensor:
        kept.append((rng.random(len(batch.Y)), batch))
        keys = np.concatenate([keys for keys, _ in kept])
        best = np.sort(np.argsort(keys)[:number])
        columns = (tf.concat(parts, 0) for parts in zip(*(rows for _, rows in kept)))
        kept[:] = [(keys[best], take(Batch(*columns), best))]
        return tf.zeros([])

    sum_over(source, look)
    return _in_memory(kept[0][1])


def _in_memory(batch: Batch) -> ArraySource:
    X, Y, weight = (column.numpy() for column in batch)
    return ArraySource(X, Y, weight, len(Y))
