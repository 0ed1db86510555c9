"""What the workers of a cluster run: functions of one partition, which is a list of chunks."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..data.batch import regrouped
from ..data.passes import add, map_over, sum_over
from ..data.pieces import Piece
from ..data.readers import MOST_LABELS, checked
from ..data.sources import Source


class Sent(NamedTuple):
    """What a pass sends, as it was packed, and GPflow's settings where it comes from."""

    packed: bytes
    settings: gpflow.config.Config


class Job(NamedTuple):
    """What is to be done with each partition."""

    function: Callable[..., Any]
    views: tuple[Callable[[Any], Any], ...] = ()  #: of a chunk, before `function` gets it
    structure: Any = ()  #: of the rows that go along
    places: tuple[int | None, ...] = ()  #: of these among what was made, where they come from there
    add: Callable[[Any, Any], Any] = add  #: of results of `function`


class Facts(NamedTuple):
    """What is asked of a partition before any pass."""

    num_rows: int
    width: int  #: columns of X
    weighs: bool  #: whether any weight is positive
    labels: AnyNDArray | None  #: distinct ones of one column, if they are few

    @property
    def num_bytes(self) -> int:
        """:return: of X, a label and the weight."""
        return int(self.num_rows * (self.width + 2) * tf.as_dtype(gpflow.default_float()).size)


@functools.lru_cache(maxsize=16)
def _unpacked(packed: bytes) -> Any:
    return pickle.loads(packed)


def _open(sent: Sent) -> Any:
    """:return: what was packed, under the settings of the process that did."""
    if gpflow.config.config() != sent.settings:
        gpflow.config.set_config(sent.settings)
    return _unpacked(sent.packed)


class _Chunks(Source):
    def __init__(self, chunks: list[Any], views: tuple[Callable[[Any], Any], ...]) -> None:
        self._chunks, self._views = chunks, views

    def chunks(self) -> Iterator[Any]:
        for arrays in self._chunks:
            chunk = tf.nest.map_structure(tf.convert_to_tensor, arrays)
            for view in self._views:
                chunk = view(chunk)
            yield chunk


def read(sent: Sent, piece: Piece) -> list[Any]:
    """
    :param sent: a check, and the rows of a chunk.
    :return: the chunks of a partition, checked; none where it has no rows.
    """
    check, chunk_rows = _open(sent)
    if not np.shape(piece.X)[0]:
        return []
    batches = (checked(part, check) for part in piece.cut(chunk_rows))
    return [_arrays(batch) for batch in regrouped(batches, chunk_rows)]


def facts(_: Sent, chunks: list[Any]) -> Facts:
    """See `Facts`."""
    if not chunks:
        return Facts(0, 0, False, None)
    X, Y, weight = (np.concatenate(column) for column in zip(*chunks))
    labels = np.unique(Y) if Y.shape[1] == 1 else None
    few = labels is not None and len(labels) <= MOST_LABELS
    return Facts(len(X), X.shape[1], bool(weight.any()), labels if few else None)


def projected(sent: Sent, chunks: list[Any]) -> list[Any]:
    """:return: the chunks as a job's views make them."""
    return [_arrays(chunk) for chunk in _Chunks(chunks, _open(sent).views).chunks()]


def summed(sent: Sent, chunks: list[Any], *along: Any) -> Any:
    """See `passes.sum_over`."""
    job: Job = _open(sent)
    rows = _Chunks(chunks, job.views)
    return _arrays(sum_over(rows, job.function, *_packed(job, along), add=job.add))


def mapped(sent: Sent, chunks: list[Any], *along: Any) -> list[Any]:
    """:return: the structure of what `passes.map_over` makes, and its columns."""
    job: Job = _open(sent)
    return _made(map_over(_Chunks(chunks, job.views), job.function, *_packed(job, along)))


def combined(sent: Sent, *along: Any) -> list[Any]:
    """:return: the structure of what `passes.combine` makes, and its columns."""
    job: Job = _open(sent)
    return _made(job.function(*_packed(job, along)))


def called(sent: Sent, *along: Any) -> Any:
    """:return: what a function makes of rows."""
    job: Job = _open(sent)
    return _arrays(job.function(*_packed(job, along)))


def made_column(place: int, made: list[Any]) -> Any:
    """:return: a column of what was made; of place 0 the structure."""
    return made[place]


def added(sent: Sent, parts: list[Any]) -> Any:
    """:return: the sum of what some partitions have sent."""
    return _arrays(functools.reduce(_open(sent).add, parts))


def _packed(job: Job, along: tuple[Any, ...]) -> Any:
    """:return: rows that go along, in the structure that they had."""
    columns = (one if place is None else one[place] for one, place in zip(along, job.places))
    return tf.nest.pack_sequence_as(job.structure, list(map(tf.convert_to_tensor, columns)))


def _made(rows: Any) -> list[Any]:
    return [tf.nest.map_structure(lambda _: None, rows), *tf.nest.flatten(_arrays(rows))]


def _arrays(tensors: Any) -> Any:
    return tf.nest.map_structure(
        lambda one: one.numpy() if isinstance(one, tf.Tensor) else one, tensors
    )
