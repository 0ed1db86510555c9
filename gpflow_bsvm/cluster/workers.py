"""Functions that a cluster's workers run on a partition (a list of chunks)."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..data.batch import Piece, digests, regrouped
from ..data.passes import add
from ..data.readers import MOST_LABELS, checked
from ..data.sources import Source


class Sent(NamedTuple):
    """A pickled message of a pass, and the sender's GPflow settings."""

    packed: bytes
    settings: gpflow.config.Config


class Job(NamedTuple):
    """The work on each partition."""

    function: Callable[..., Any]  #: of the partition as a `Source`, and `along`
    views: tuple[Callable[[Any], Any], ...] = ()  #: functions of a chunk, called before `function`
    structure: Any = ()  #: structure of the accompanying rows
    add: Callable[[Any, Any], Any] = add  #: adds results of `function`


class Facts(NamedTuple):
    """Facts about a partition, needed before any pass."""

    num_rows: int
    weighs: bool  #: whether any weight is positive
    labels: AnyNDArray | None  #: distinct labels of one column, if they are few


@functools.lru_cache(maxsize=16)
def _unpacked(packed: bytes) -> Any:
    return pickle.loads(packed)


def _open(sent: Sent) -> Any:
    """:return: the message, unpacked under the sender's settings."""
    if gpflow.config.config() != sent.settings:
        gpflow.config.set_config(sent.settings)
    return _unpacked(sent.packed)


class _Chunks(Source):
    def __init__(self, chunks: list[Any], views: tuple[Callable[[Any], Any], ...]) -> None:
        self._chunks = chunks
        self._views = views

    def chunks(self) -> Iterator[Any]:
        for arrays in self._chunks:
            chunk = tf.nest.map_structure(tf.convert_to_tensor, arrays)
            for view in self._views:
                chunk = view(chunk)
            yield chunk


def read(sent: Sent, piece: Piece) -> list[Any]:
    """
    :param sent: a check, and the number of rows in a chunk.
    :return: a partition's checked chunks; empty if it has no rows.
    """
    check, chunk_rows = _open(sent)
    if not np.shape(piece.X)[0]:
        return []
    batches = (checked(part, check) for part in piece.cut(chunk_rows))
    return [_arrays(batch) for batch in regrouped(batches, chunk_rows)]


def facts(chunks: list[Any]) -> Facts:
    """See `Facts`."""
    if not chunks:
        return Facts(0, False, None)
    Y = np.concatenate([chunk.Y for chunk in chunks])
    weight = np.concatenate([chunk.weight for chunk in chunks])
    labels = np.unique(Y) if Y.shape[1] == 1 else None
    few = labels is not None and len(labels) <= MOST_LABELS
    return Facts(len(Y), bool(weight.any()), labels if few else None)


def done(sent: Sent, chunks: list[Any], beside: list[AnyNDArray]) -> Any:
    """:return: a job's results for a partition, as arrays."""
    job: Job = _open(sent)
    along = tf.nest.pack_sequence_as(job.structure, list(map(tf.convert_to_tensor, beside)))
    return _arrays(job.function(_Chunks(chunks, job.views), along=along))


def added(sent: Sent, parts: list[Any]) -> Any:
    """:return: the sum of partitions' results."""
    return _arrays(functools.reduce(_open(sent).add, parts))


def as_seen(rows: Source, along: Any) -> list[Any]:
    """:return: a partition's chunks, converted by a job's views."""
    return list(rows.chunks())


def digested(rows: Source, along: Any) -> dict[str, str]:
    """See `digests`."""
    return digests(rows.chunks())


def _arrays(tensors: Any) -> Any:
    return tf.nest.map_structure(
        lambda one: one.numpy() if isinstance(one, tf.Tensor) else one, tensors
    )
