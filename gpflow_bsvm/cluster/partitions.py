"""
Rows on the workers of a Dask cluster: functions go to the partitions, sums of them come back.

What is sent with a pass is the function, by its name where it has one, and the tensors that it
holds (q and the hyperparameters: L M^2 numbers or so). What comes back are sums, added up as a tree
of fixed shape, so that they are the same to the last bit on any number of workers. Rows that a pass
makes for later ones, such as sites, stay where they were made. Everything is a future that the
scheduler can have made again: a worker that dies costs time.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from ..data import passes
from ..data.sources import Remote, RemoteRows
from ..optional import require
from . import workers
from .dask_data import named
from .workers import Job

#: Sums of so many partitions become one.
_FAN_IN = 8
#: What is kept on the workers takes at most this part of their memory; of one without a limit.
_KEPT_PART, _NO_LIMIT = 0.4, 2**31


class Cluster:
    """The workers of a `dask.distributed.Client`."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def send(self, content: Any) -> Any:
        """
        :return: a future of what every task of a pass is told.
        :raise TypeError: for a model that holds what cannot be sent.
        """
        try:
            packed = require("cloudpickle", extra="dask").dumps(content)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise TypeError(
                f"the model cannot be sent to workers ({error}): kernels, mean functions and "
                "likelihoods of GPflow and of this package can, and your own if pickle can"
            ) from error
        with self._own_errors():
            return self._client.submit(workers.Sent, packed, gpflow.config.config(), pure=False)

    def map(self, function: Callable[..., Any], how: Any, *columns: list[Any]) -> list[Any]:
        """:return: futures of the function of `how` and of each partition's part of columns."""
        with self._own_errors():
            futures: list[Any] = self._client.map(
                function, [how] * len(columns[0]), *columns, pure=False
            )
            return futures

    def compute(self, delayed: list[Any]) -> list[Any]:
        """:return: futures of what Dask is to compute."""
        with self._own_errors():
            futures: list[Any] = self._client.compute(delayed)
            return futures

    def results(self, futures: list[Any], partitions: bool = False) -> list[Any]:
        """
        :param partitions: whether each is of one partition, which errors then name.
        :return: what futures will be.
        :raise ConnectionError: where the cluster is gone.
        :raise Exception: of the data, or whatever else a task has raised.
        """
        with self._own_errors(futures, partitions):
            found: list[Any] = self._client.gather(futures)
            return found

    def tree(self, how: Any, parts: list[Any]) -> Any:
        """
        :param how: a `Job` that was sent.
        :return: the sum of all, in an order that depends on their number only.
        """
        while len(parts) > 1:
            groups = [parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN)]
            parts = self.map(workers.added, how, groups)
        return self.results(parts)[0]

    @property
    def memory(self) -> float:
        """:return: bytes that may be kept on all workers together."""
        info = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return _KEPT_PART * sum(worker["memory_limit"] or _NO_LIMIT for worker in info)

    @contextlib.contextmanager
    def _own_errors(self, futures: Sequence[Any] = (), partitions: bool = False) -> Iterator[None]:
        distributed = require("distributed", extra="dask")
        closed = getattr(distributed.client, "ClosedClientError", OSError)  # not in old versions
        killed = distributed.KilledWorker
        try:
            yield
        except Exception as error:
            for number, future in enumerate(futures):
                if future.status == "error":
                    own = future.exception()
                    if not isinstance(own, killed):
                        own = named(own, number) if partitions else own
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


class Partitions(Remote):
    """Rows on the workers, as some views of them show them."""

    def __init__(
        self,
        cluster: Cluster,
        parts: Callable[[], list[Any]],
        rows: tuple[int, ...],
        views: tuple[Callable[[Any], Any], ...] = (),
        kept: float = 0.0,
    ) -> None:
        """
        :param parts: futures of the chunks of each partition.
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
        parts = cluster.map(workers.projected, cluster.send(Job(_nothing, views)), self._parts())
        return Partitions(cluster, lambda: parts, self._rows, (), self._kept)

    def sum(
        self, function: Callable[..., Any], along: tuple[Any, ...], add: Callable[[Any, Any], Any]
    ) -> Any:
        """See `Remote`."""
        how, columns = self._job(function, along, add)
        parts = self.cluster.map(workers.summed, how, self._parts(), *columns)
        return _tensors(self.cluster.tree(how, parts))

    def map(self, function: Callable[..., Any], along: tuple[Any, ...]) -> Any:
        """See `Remote`."""
        how, columns = self._job(function, along)
        return self._made(self.cluster.map(workers.mapped, how, self._parts(), *columns))

    def combine(self, function: Callable[..., Any], rows: tuple[Any, ...]) -> Any:
        """See `RemoteRows`."""
        how, columns = self._job(function, rows)
        return self._made(self.cluster.map(workers.combined, how, *columns))

    def total(self, column: Column) -> tf.Tensor:
        """See `RemoteRows`."""
        how, columns = self._job(tf.reduce_sum, (column,))
        return _tensors(self.cluster.tree(how, self.cluster.map(workers.called, how, *columns)))

    def _job(
        self,
        function: Callable[..., Any],
        along: Any,
        add: Callable[[Any, Any], Any] = passes.add,
    ) -> tuple[Any, list[list[Any]]]:
        """:return: what to do with each partition, and what goes along."""
        leaves = tf.nest.flatten(along)
        structure = tf.nest.map_structure(lambda _: None, along)
        places = tuple(leaf.place if isinstance(leaf, Column) else None for leaf in leaves)
        how = self.cluster.send(Job(function, self._views, structure, places, add))
        return how, list(map(self._parts_of, leaves))

    def _parts_of(self, leaf: Any) -> list[Any]:
        """:return: the parts of a column, which is there, or here."""
        if isinstance(leaf, Column):
            return leaf.parts
        return np.split(np.asarray(leaf), np.cumsum(self._rows)[:-1])

    def _made(self, parts: list[Any]) -> Any:
        """
        :param parts: futures of the structure and the columns of what is made.
        :return: a `Column` for each, in that structure.
        """
        (structure,) = self.cluster.results(self.cluster.map(workers.made_column, 0, parts[:1]))
        places = range(1, 1 + len(tf.nest.flatten(structure)))
        columns = [Column(self, parts, place) for place in places]
        return tf.nest.pack_sequence_as(structure, columns)


def _tensors(found: Any) -> Any:
    return tf.nest.map_structure(
        lambda one: tf.convert_to_tensor(one) if isinstance(one, (np.ndarray, np.generic)) else one,
        found,
    )


def _nothing() -> None:
    return


class Column(RemoteRows):
    """One of the columns that a pass has made, in partitions."""

    def __init__(self, source: Partitions, parts: list[Any], place: int) -> None:
        self._source, self.parts, self.place = source, parts, place

    def collect(self) -> tf.Tensor:
        """See `RemoteRows`."""
        cluster = self._source.cluster
        return tf.concat(
            cluster.results(cluster.map(workers.made_column, self.place, self.parts)), 0
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.collect(), dtype)

    def total(self) -> tf.Tensor:
        """See `RemoteRows`."""
        return self._source.total(self)

    def combine(self, function: Callable[..., Any], rows: tuple[Any, ...]) -> Any:
        """See `RemoteRows`."""
        return self._source.combine(function, rows)
