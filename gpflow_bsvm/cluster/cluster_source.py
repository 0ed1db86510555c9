"""Dask's data on a cluster, checked partition by partition where they are."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..data.readers import MOST_LABELS
from ..data.sources import Remote, Source
from . import workers
from .dask_data import DaskReader
from .partitions import Cluster, Partitions
from .workers import Facts


class ClusterSource(DaskReader):
    """
    The rows of a `DaskReader` on the workers of a client; minibatches, and whatever else is read in
    order, come to this process partition by partition.
    """

    def __init__(self, rows: Source, client: Any) -> None:
        """:param rows: a `DaskReader` that was opened."""
        vars(self).update(vars(rows))
        self._cluster = Cluster(client)
        self._open = functools.cache(self._opened)  # also of copies with other weights

    @property
    def one_chunk(self) -> bool:
        """See `Source`."""
        return False

    @property
    def num_rows(self) -> int:  # type: ignore[override]
        """:return: N, if need be by a pass over the data."""
        return self._open().num_rows if self.known_rows is None else self.known_rows

    @property
    def remote(self) -> Remote:  # type: ignore[override]
        """See `Source`; the first time, all rows are checked."""
        rows = self._open()
        return (
            rows if self._factor == 1 else rows.projected(functools.partial(_scaled, self._factor))
        )

    def _opened(self) -> Partitions:
        cluster = self._cluster
        how = cluster.send((self._asked, self.chunk_rows))

        def read(partitions: list[Any]) -> list[Any]:
            return cluster.map(workers.read, how, cluster.compute(partitions))

        def facts_of(parts: list[Any]) -> list[Facts]:
            found = cluster.map(workers.facts, how, parts)
            return cluster.results(found, partitions=True)

        (first,) = facts_of(read(self.partitions[:1]))
        keeps = first.num_bytes * len(self.partitions) < cluster.memory
        parts = read(self.partitions) if keeps else None
        facts = facts_of(parts or read(self.partitions))
        self._check_facts(facts)
        filled = [n for n, fact in enumerate(facts) if fact.num_rows]
        rows = tuple(facts[n].num_rows for n in filled)
        if parts is None:
            some = [self.partitions[n] for n in filled]
            return Partitions(cluster, lambda: read(some), rows)
        kept = sum(fact.num_bytes for fact in facts)
        return Partitions(cluster, lambda: [parts[n] for n in filled], rows, kept=kept)

    def _check_facts(self, facts: list[Facts]) -> None:
        """:raise ValueError: for what is wrong with all partitions together."""
        some = [fact for fact in facts if fact.num_rows]
        if not any(fact.weighs for fact in some):
            raise ValueError(
                "sample_weight must not be all zero" if some else "the Dask data have no rows"
            )
        labels = [fact.labels for fact in some]
        if all(found is not None for found in labels):
            distinct = np.unique(np.concatenate([found for found in labels if found is not None]))
            if len(distinct) <= MOST_LABELS:
                self._asked.labels(distinct[:, None])


def _scaled(factor: float, batch: Any) -> Any:
    return batch._replace(weight=batch.weight * factor)
