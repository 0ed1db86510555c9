"""
Rows on the workers of a Dask cluster: functions go to the partitions, sums of them come back.

What is sent with a pass is the function, by its name where it has one, and the tensors that it
holds (q and the hyperparameters: L M^2 numbers or so). What comes back are sums, added up as a tree
of fixed shape, so that they are the same to the last bit on any number of workers. Rows that a pass
makes for later ones, such as sites, stay where they were made. Everything is `dask.delayed`, so
that the scheduler can have it made again: a worker that dies costs time.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from ..data import passes
from ..data.sources import Remote, RemoteRows
from ..optional import require
from . import workers
from .workers import Job

#: Sums of so many partitions become one.
_FAN_IN = 8
#: What is kept on the workers takes at most this part of their memory; of one without a limit.
_KEPT_PART, _NO_LIMIT = 0.4, 2**31


class Cluster:
    """The workers of a `dask.distributed.Client`."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.delayed = require("dask", extra="dask").delayed

    def send(self, content: Any) -> Any:
        """
        :return: what every task of a pass is told.
        :raise TypeError: for a model that holds what cannot be sent.
        """
        try:
            packed = require("cloudpickle", extra="dask").dumps(content)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise TypeError(
                f"the model cannot be sent to workers ({error}): kernels, mean functions and "
                "likelihoods of GPflow and of this package can, and your own if pickle can"
            ) from error
        return self.delayed(workers.Sent)(packed, gpflow.config.config())

    def each(self, function: Callable[..., Any], how: Any, *columns: list[Any]) -> list[Any]:
        """:return: the function of each partition's part of the columns, to be computed."""
        return [self.delayed(function)(how, *parts) for parts in zip(*columns)]

    def keep(self, parts: list[Any]) -> list[Any]:
        """:return: the same, computed on the workers, and kept there."""
        with self._own_errors([]):
            kept: list[Any] = self._client.persist(parts)
            return kept

    def results(self, parts: list[Any], partitions: bool = False) -> list[Any]:
        """
        :param partitions: whether each is of one partition, which errors then name.
        :return: what is to be computed.
        :raise ConnectionError: where the cluster is gone.
        :raise Exception: of the data, or whatever else a task has raised.
        """
        futures: list[Any] = []
        with self._own_errors(futures, partitions):
            futures += self._client.compute(parts)
            found: list[Any] = self._client.gather(futures)
            return found

    def tree(self, how: Any, parts: list[Any]) -> Any:
        """
        :param how: a `Job` that was sent.
        :return: the sum of all, in an order that depends on their number only.
        """
        while len(parts) > 1:
            groups = [parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN)]
            parts = self.each(workers.added, how, groups)
        return self.results(parts)[0]

    @property
    def memory(self) -> float:
        """:return: bytes that may be kept on all workers together."""
        info = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return _KEPT_PART * sum(worker["memory_limit"] or _NO_LIMIT for worker in info)

    @contextlib.contextmanager
    def _own_errors(self, futures: list[Any], partitions: bool = False) -> Iterator[None]:
        distributed = require("distributed", extra="dask")
        closed = getattr(distributed.client, "ClosedClientError", OSError)  # not in old versions
        killed = distributed.KilledWorker
        try:
            yield
        except Exception as error:
            for number, future in enumerate(futures):
                if future.status == "error" and not isinstance(future.exception(), killed):
                    own = named(error, number) if partitions else error
                    raise own from own.__cause__
            if not isinstance(
                error, (OSError, TimeoutError, distributed.CancelledError, killed, closed)
            ):
                raise
            raise ConnectionError(
                f"the Dask cluster of {self._client} is gone, or its workers die of a partition "
                f"({type(error).__name__}: {error}). The model holds the latest step; with another "
                "client the same call begins there, or exactly where this one ended if it was "
                "given checkpoint=..."
            ) from error


def named(error: Exception, partition: int) -> Exception:
    """:return: an error of reading a partition that says which it is."""
    if not isinstance(error, (OSError, ValueError)) or str(error).startswith("partition "):
        return error
    if getattr(error, "filename", None) is not None:
        return error
    kind = OSError if isinstance(error, OSError) else ValueError
    found = kind(f"partition {partition} cannot be read: {error}")
    found.__cause__ = error
    return found


class Partitions(Remote):
    """Rows on the workers, as some views of them show them."""

    def __init__(
        self,
        cluster: Cluster,
        parts: list[Any],
        rows: tuple[int, ...],
        views: tuple[Callable[[Any], Any], ...] = (),
        kept: float = 0.0,
    ) -> None:
        """
        :param parts: the chunks of each partition.
        :param rows: of each partition.
        :param views: of a chunk.
        :param kept: bytes that are kept already.
        """
        self.cluster, self._parts, self._rows = cluster, parts, rows
        self._views, self._kept = views, kept

    @property
    def num_rows(self) -> int:
        """:return: N."""
        return sum(self._rows)

    def has_room(self, num_bytes: float) -> bool:
        """See `Remote`."""
        return self._kept + num_bytes <= self.cluster.memory

    def projected(self, project: Callable[[Any], Any], keep: bool = False) -> Partitions:
        """See `Remote`."""
        cluster, views = self.cluster, (*self._views, project)
        if not keep:
            return Partitions(cluster, self._parts, self._rows, views, self._kept)
        how = cluster.send(Job(_nothing, views))
        parts = cluster.keep(cluster.each(workers.projected, how, self._parts))
        return Partitions(cluster, parts, self._rows, (), self._kept)

    def sum(
        self, function: Callable[..., Any], along: tuple[Any, ...], add: Callable[[Any, Any], Any]
    ) -> Any:
        """See `Remote`."""
        how, columns = self.job(function, along, add)
        return self.tree(how, self.cluster.each(workers.summed, how, self._parts, *columns))

    def tree(self, how: Any, parts: list[Any]) -> Any:
        """:return: the sum of all, as tensors."""
        return tf.nest.map_structure(
            lambda one: tf.convert_to_tensor(one) if isinstance(one, _ARRAYS) else one,
            self.cluster.tree(how, parts),
        )

    def map(self, function: Callable[..., Any], along: tuple[Any, ...]) -> Any:
        """See `Remote`."""
        how, columns = self.job(function, along)
        return self.made(self.cluster.each(workers.mapped, how, self._parts, *columns))

    def made(self, parts: list[Any]) -> Any:
        """
        :param parts: of each partition the structure and the columns of what is made.
        :return: a `Column` for each, in that structure.
        """
        parts = self.cluster.keep(parts)
        (structure,) = self.cluster.results([parts[0][0]])
        places = range(1, 1 + len(tf.nest.flatten(structure)))
        columns = [Column(self, [part[place] for part in parts]) for place in places]
        return tf.nest.pack_sequence_as(structure, columns)

    def job(
        self,
        function: Callable[..., Any],
        along: Any = (),
        add: Callable[[Any, Any], Any] = passes.add,
    ) -> tuple[Any, list[list[Any]]]:
        """:return: what to do with each partition, and what goes along."""
        structure = tf.nest.map_structure(lambda _: None, along)
        how = self.cluster.send(Job(function, self._views, structure, add))
        return how, list(map(self._parts_of, tf.nest.flatten(along)))

    def _parts_of(self, leaf: Any) -> list[Any]:
        """:return: the parts of a column, which is there, or here."""
        if isinstance(leaf, Column):
            return leaf.parts
        return np.split(np.asarray(leaf), np.cumsum(self._rows)[:-1])


_ARRAYS = (np.ndarray, np.generic)


def _nothing() -> None:
    return


class Column(RemoteRows):
    """One of the columns that a pass has made, in partitions."""

    def __init__(self, source: Partitions, parts: list[Any]) -> None:
        self._source, self.parts = source, parts

    def collect(self) -> tf.Tensor:
        """See `RemoteRows`."""
        return tf.concat(self._source.cluster.results(self.parts), 0)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.collect(), dtype)

    def total(self) -> tf.Tensor:
        """See `RemoteRows`."""
        how, _ = self._source.job(_nothing)
        sums = [self._source.cluster.delayed(np.sum)(part) for part in self.parts]
        return self._source.tree(how, sums)

    def combine(self, function: Callable[..., Any], rows: tuple[Any, ...]) -> Any:
        """See `RemoteRows`."""
        how, columns = self._source.job(function, rows)
        return self._source.made(self._source.cluster.each(workers.combined, how, *columns))
