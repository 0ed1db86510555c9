"""Some rows of the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import tensorflow as tf

T = TypeVar("T")


class Batch(NamedTuple):
    """Rows of a source; in a prediction Y has no columns."""

    X: tf.Tensor  #: [N, D]
    Y: tf.Tensor  #: [N, P]
    weight: tf.Tensor  #: [N, 1], powers of the likelihood

    def between(self, start: Any, stop: Any) -> Batch:
        """:return: the rows from `start` to before `stop`."""
        return Batch._make(column[start:stop] for column in self)


def take(columns: T, index: Any) -> T:
    """:return: the rows at these indices, in order, of tensors in any structure."""
    return cast(T, tf.nest.map_structure(partial(tf.gather, indices=index), columns))


def joined(parts: Sequence[T]) -> T:
    """:return: the rows of all parts, in order; parts are tensors in equal structures."""
    columns = zip(*map(tf.nest.flatten, parts))
    return cast(T, tf.nest.pack_sequence_as(parts[0], [tf.concat(c, 0) for c in columns]))


def regrouped(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """:return: the rows as NumPy arrays in batches of `size`; the last may be smaller."""
    group: list[Batch] = []
    for batch in batches:
        start = 0
        number = len(batch.X)
        while start < number:
            stop = start + size - sum(len(one.X) for one in group)
            group.append(batch.between(start, stop))
            start = stop
            if stop <= number:
                yield _together(group)
                group = []
    if group:
        yield _together(group)


def _together(group: list[Batch]) -> Batch:
    return group[0] if len(group) == 1 else Batch._make(map(np.concatenate, zip(*group)))
