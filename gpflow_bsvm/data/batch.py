"""Some rows of the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf


class Batch(NamedTuple):
    """Rows of a source; in a prediction Y has no columns."""

    X: tf.Tensor  #: [N, D]
    Y: tf.Tensor  #: [N, P]
    weight: tf.Tensor  #: [N, 1], powers of the likelihood


def take(batch: Batch, index: tf.Tensor) -> Batch:
    """:return: the rows at these indices, in order."""
    return Batch(*(tf.gather(column, index) for column in batch))


def joined(batches: Sequence[Batch]) -> Batch:
    """:return: the rows of all batches, in order."""
    return batches[0] if len(batches) == 1 else Batch(*(tf.concat(c, 0) for c in zip(*batches)))


def regrouped(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """:return: the rows as NumPy arrays in batches of `size`; the last may be smaller."""
    group: list[Batch] = []
    for batch in batches:
        start = 0
        number = len(batch.X)
        while start < number:
            stop = start + size - sum(len(one.X) for one in group)
            group.append(Batch(*(column[start:stop] for column in batch)))
            start = stop
            if stop <= number:
                yield _together(group)
                group = []
    if group:
        yield _together(group)


def _together(group: list[Batch]) -> Batch:
    return group[0] if len(group) == 1 else Batch(*map(np.concatenate, zip(*group)))
