"""
Rows on the workers of a Dask cluster: functions are sent to partitions, and sums come back.

A pass sends a function (its name, if it has one) and tensors (q and hyperparameters, about L M^2
numbers). Results are summed in a tree of fixed shape: sums are equal to the last bit for any number
of workers. The scheduler can recompute every future: a dead worker only costs time.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..data.batch import Piece, digest, digests, joined, regrouped
from ..data.passes import map_over, sum_over
from ..data.readers import MOST_LABELS, Check, checked
from ..data.sources import Remote, Source
from ..optional import require

#: Number of partial sums added at a time.
_FAN_IN = 8
#: Largest fraction of workers' memory for cached features; their assumed memory if unlimited.
_KEPT_PART = 0.4
_NO_LIMIT = 2**31


class Cluster:
    """The workers of a `dask.distributed.Client`."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def send(self, function: Callable[..., Any]) -> Any:
        """
        :return: a future of the function, to be used by `_call`.
        :raise TypeError: for a model with parts that cannot be sent.
        """
        try:
            packed = require("cloudpickle", extra="dask").dumps(function)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise TypeError(
                f"the model cannot be sent to workers ({error}): kernels, mean functions and "
                "likelihoods of GPflow and this package can be sent, others only if pickle can "
                "store them"
            ) from error
        return self.map(_Sent, [packed], [gpflow.config.config()])[0]

    def map(self, function: Callable[..., Any], *columns: list[Any]) -> list[Any]:
        """:return: futures of the function's results for each partition's part of the columns."""
        with self._own_errors():
            return list(self._client.map(function, *columns, pure=False))

    def read(self, partitions: list[Any], check: Any, chunk_rows: int) -> list[Any]:
        """:return: futures of each partition's checked chunks."""
        call = require("dask").delayed(_call)
        read = self.send(functools.partial(_read, check, chunk_rows))
        with self._own_errors():
            return list(self._client.compute([call(read, one) for one in partitions]))

    def results(self, futures: list[Any], partitions: bool = False) -> list[Any]:
        """
        :param partitions: whether each future belongs to one partition; errors then name it.
        :return: the results of the futures.
        :raise ConnectionError: if the cluster is gone; errors of tasks, such as bad data, remain.
        """
        with self._own_errors(futures, partitions):
            return list(self._client.gather(futures))

    def tree(self, add: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
        """:return: the sum of all parts, in an order that depends only on their number."""
        added = self.send(functools.partial(functools.reduce, add))
        while len(parts) > 1:
            groups = [parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN)]
            parts = self.map(_call, [added] * len(groups), groups)
        return tf.nest.map_structure(_tensor, self.results(parts)[0])

    @property
    def room(self) -> float:
        """:return: the total number of bytes for cached features on all workers."""
        info = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return _KEPT_PART * sum(worker["memory_limit"] or _NO_LIMIT for worker in info)

    @contextlib.contextmanager
    def _own_errors(self, futures: Sequence[Any] = (), partitions: bool = False) -> Iterator[None]:
        distributed = require("distributed", extra="dask")
        closed = getattr(distributed.client, "ClosedClientError", OSError)  # not in old ones
        killed = distributed.KilledWorker
        try:
            yield
        except Exception as error:
            for number, future in enumerate(futures):
                own = future.exception() if future.status == "error" else None
                if own is not None and not isinstance(own, killed):
                    own = named(own, number) if partitions else own
                    raise own from own.__cause__
            gone = (OSError, TimeoutError, distributed.CancelledError, killed, closed)
            if not isinstance(error, gone):
                raise
            raise ConnectionError(
                f"the Dask cluster of {self._client} is gone, or a partition kills its workers "
                f"({type(error).__name__}: {error}). The model stays at its latest step. The "
                "same call with another client starts there; with checkpoint=... it continues "
                "exactly where this call ended"
            ) from error


@dataclass
class Partitions(Remote):
    """
    Rows on the workers.

    :ivar parts: futures of the chunks of each partition.
    :ivar rows: number of rows of each partition.
    :ivar views: functions that convert each chunk, applied in turn.
    """

    cluster: Cluster
    parts: list[Any]
    rows: tuple[int, ...]
    views: tuple[Callable[[Any], Any], ...] = ()

    def has_room(self, num_bytes: float) -> bool:
        """See `Remote`; rows do not count: Dask moves them to disk if memory is short."""
        return num_bytes <= self.cluster.room

    def projected(self, project: Callable[[Any], Any], keep: bool = False) -> Partitions:
        seen = replace(self, views=(*self.views, project))
        return replace(self, parts=seen.run(_chunks_of), views=()) if keep else seen

    def sum(self, function: Callable[..., Any], along: Any, add: Callable[[Any, Any], Any]) -> Any:
        summed = functools.partial(sum_over, function=function, add=add)
        return self.cluster.tree(add, self.run(summed, along))

    def map(self, function: Callable[..., Any], along: Any) -> Any:
        mapped = functools.partial(map_over, function=function)
        return joined(self.cluster.results(self.run(mapped, along)))

    def digests(self) -> dict[str, str]:
        return all_together(self.cluster.results(self.run(_digests_of)))

    def run(self, function: Callable[..., Any], along: Any = ()) -> list[Any]:
        """:return: futures of the function of each partition (a `Source`) and its `along`."""
        structure = tf.nest.map_structure(type, along)
        work = self.cluster.send(functools.partial(_work, function, self.views, structure))
        ends = np.cumsum(self.rows)
        columns = [np.asarray(column) for column in tf.nest.flatten(along)]
        beside = [[column[end - n : end] for column in columns] for end, n in zip(ends, self.rows)]
        return self.cluster.map(_call, [work] * len(ends), self.parts, beside)


def all_together(found: Sequence[dict[str, str]]) -> dict[str, str]:
    """:return: the combined `digests` of all nonempty partitions."""
    parts = {name: digest(str([one[name] for one in found])) for name in found[0]}
    return {name: f"{len(found)} partitions ({text})" for name, text in parts.items()}


def checked_partitions(
    cluster: Cluster, partitions: list[Any], check: Check, chunk_rows: int
) -> Partitions:
    """
    Read and check Dask's partitions on the workers.

    :raise ValueError: for bad rows, or if all partitions together are not valid data.
    """
    parts = cluster.read(partitions, check, chunk_rows)
    facts = cluster.results(cluster.map(_facts, parts), partitions=True)
    filled = [n for n, fact in enumerate(facts) if fact.num_rows]
    _check_facts([facts[n] for n in filled], check)
    return Partitions(cluster, [parts[n] for n in filled], tuple(facts[n].num_rows for n in filled))


def _check_facts(facts: list[_Facts], check: Check) -> None:
    if not any(fact.weighs for fact in facts):
        raise ValueError(
            "sample_weight must not be all zero" if facts else "the Dask data have no rows"
        )
    labels = [fact.labels for fact in facts if fact.labels is not None]
    distinct = np.unique(np.concatenate(labels or [()]))
    if len(labels) == len(facts) and len(distinct) <= MOST_LABELS:
        check.labels(distinct[:, None])


def named(error: Exception, partition: int) -> Exception:
    """:return: an error of the same built-in type that names the unreadable partition."""
    if str(error).startswith("partition "):
        return error
    where = f"partition {partition} cannot be read: "
    if isinstance(error, OSError) and error.filename is not None:
        found: Exception = OSError(error.errno, f"{where}{error.strerror}", error.filename)
    elif isinstance(error, (OSError, ValueError)):
        found = (OSError if isinstance(error, OSError) else ValueError)(f"{where}{error}")
    else:
        kind = next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")
        found = kind(f"{where}{type(error).__name__}: {error}")
    found.__cause__ = error
    return found


def _tensor(one: Any) -> Any:
    return tf.convert_to_tensor(one) if isinstance(one, (np.ndarray, np.generic)) else one


# The code below runs on the workers.


class _Sent(NamedTuple):
    """A pickled function, and the sender's GPflow settings."""

    packed: bytes
    settings: gpflow.config.Config


@functools.lru_cache(maxsize=16)
def _unpacked(packed: bytes) -> Any:
    return pickle.loads(packed)


def _call(sent: _Sent, *given: Any) -> Any:
    """:return: the function's result under the sender's settings, with arrays for tensors."""
    if gpflow.config.config() != sent.settings:
        gpflow.config.set_config(sent.settings)
    return tf.nest.map_structure(_array, _unpacked(sent.packed)(*given))


def _array(one: Any) -> Any:
    return one.numpy() if isinstance(one, tf.Tensor) else one


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


def _work(
    function: Callable[..., Any], views: Any, structure: Any, chunks: list[Any], beside: list[Any]
) -> Any:
    """:return: the function's result for a partition, whose chunks the views convert."""
    along = tf.nest.pack_sequence_as(structure, list(map(tf.convert_to_tensor, beside)))
    return function(_Chunks(chunks, views), along=along)


def _chunks_of(rows: Source, along: Any) -> list[Any]:
    return list(rows.chunks())


def _digests_of(rows: Source, along: Any) -> dict[str, str]:
    return digests(rows.chunks())


def has_rows(piece: Piece) -> bool:
    """:return: False for a partition without rows; raises as `Piece.check_lengths`."""
    piece.check_lengths()
    return bool(np.shape(piece.X)[0])


def _read(check: Check, chunk_rows: int, piece: Piece) -> list[Any]:
    """:return: a partition's checked chunks; empty if it has no rows."""
    if not has_rows(piece):
        return []
    return list(regrouped((checked(part, check) for part in piece.cut(chunk_rows)), chunk_rows))


class _Facts(NamedTuple):
    """Facts about a partition that are needed before any pass."""

    num_rows: int
    weighs: bool  #: whether any weight is positive
    labels: AnyNDArray | None  #: distinct labels of one column, if they are few


def _facts(chunks: list[Any]) -> _Facts:
    if not chunks:
        return _Facts(0, False, None)
    Y = np.concatenate([chunk.Y for chunk in chunks])
    weight = np.concatenate([chunk.weight for chunk in chunks])
    labels = np.unique(Y) if Y.shape[1] == 1 else None
    few = labels is not None and len(labels) <= MOST_LABELS
    return _Facts(len(Y), bool(weight.any()), labels if few else None)
