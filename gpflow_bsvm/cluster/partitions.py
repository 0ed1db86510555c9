"""
Rows on the workers of a Dask cluster: functions go to the partitions, sums of them come back.

What is sent with a pass is the function, by its name where it has one, and the tensors that it
holds (q and the hyperparameters: L M^2 numbers or so). What comes back are sums, added up as a tree
of fixed shape, so that they are the same to the last bit on any number of workers. Rows that a pass
makes for later ones, such as sites, stay where they were made. Nothing is kept that the scheduler
could not have made again: a worker that dies costs time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from ..data import passes
from ..data.sources import Remote, RemoteRows
from . import workers
from .client import Cluster
from .workers import Job


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
        how = cluster.send(Job(_nothing, views))
        parts = cluster.map(workers.seen, [how] * len(self._rows), self._parts())
        return Partitions(cluster, lambda: parts, self._rows, (), self._kept)

    def sum(
        self, function: Callable[..., Any], along: tuple[Any, ...], add: Callable[[Any, Any], Any]
    ) -> Any:
        """See `Remote`."""
        how, columns = self.job(function, along, add)
        parts = self.cluster.map(workers.summed, how, self._parts(), *columns)
        return _tensors(self.cluster.tree(how[0], parts))

    def map(self, function: Callable[..., Any], along: tuple[Any, ...]) -> Any:
        """See `Remote`."""
        how, columns = self.job(function, along)
        return columns_of(self, self.cluster.map(workers.mapped, how, self._parts(), *columns))

    def job(
        self,
        function: Callable[..., Any],
        along: Any = (),
        add: Callable[[Any, Any], Any] = passes.add,
    ) -> tuple[list[Any], list[list[Any]]]:
        """:return: for each partition what to do, and what goes along."""
        leaves = tf.nest.flatten(along)
        structure = tf.nest.map_structure(lambda _: None, along)
        places = tuple(leaf.place if isinstance(leaf, Column) else None for leaf in leaves)
        how = self.cluster.send(Job(function, self._views, structure, places, add))
        return [how] * len(self._rows), list(map(self._parts_of, leaves))

    def _parts_of(self, leaf: Any) -> list[Any]:
        """:return: the parts of a column, which is there, or here."""
        if isinstance(leaf, Column):
            return leaf.parts
        return np.split(np.asarray(leaf), np.cumsum(self._rows)[:-1])


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

    def _ask(self, function: Callable[..., Any]) -> list[Any]:
        return self._source.cluster.map(function, self.parts, [self.place] * len(self.parts))

    def collect(self) -> tf.Tensor:
        """See `RemoteRows`."""
        return tf.concat(self._source.cluster.results(self._ask(workers.column)), 0)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.collect(), dtype)

    def total(self) -> tf.Tensor:
        """See `RemoteRows`."""
        how, _ = self._source.job(_nothing)
        found = self._source.cluster.tree(how[0], self._ask(workers.column_sum))
        return tf.convert_to_tensor(found)

    def combine(self, function: Callable[..., Any], rows: tuple[Any, ...]) -> Any:
        """See `RemoteRows`."""
        source = self._source
        how, columns = source.job(function, rows)
        return columns_of(source, source.cluster.map(workers.combined, how, *columns))


def columns_of(source: Partitions, parts: list[Any]) -> Any:
    """:return: what was made, in its structure."""
    first = source.cluster.submit(workers.structure, parts[0])
    (structure,) = source.cluster.results([first])
    columns = [Column(source, parts, place) for place in range(len(tf.nest.flatten(structure)))]
    return tf.nest.pack_sequence_as(structure, columns)
