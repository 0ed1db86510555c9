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
    The rows of a `DaskReader` on the workers of a client. Minibatches, and all else that is read in
    order, come to this process partition by partition.
    """

    one_chunk = False  # type: ignore[assignment]

    def __init__(self, rows: Source, client: Any) -> None:
        """:param rows: a `DaskReader` that was opened."""
        vars(self).update(vars(rows))
        self._cluster = Cluster(client)
        self._open = functools.cache(self._opened)  # also of copies with other weights

    @property
    def num_rows(self) -> int:  # type: ignore[override]
        """:return: N, if need be by a pass over the data."""
        return self._open().num_rows if self.known_rows is None else self.known_rows

    @property
    def remote(self) -> Remote:  # type: ignore[override]
        """See `Source`; the first time, all rows are checked."""
        rows, factor = self._open(), self._factor
        return rows if factor == 1 else rows.projected(functools.partial(_scaled, factor))

    def _opened(self) -> Partitions:
        parts = self._cluster.read(self.partitions, self._asked, self.chunk_rows)
        facts = self._cluster.results(self._cluster.map(workers.facts, parts), partitions=True)
        self._check_facts(facts)
        filled = [n for n, fact in enumerate(facts) if fact.num_rows]
        rows = tuple(facts[n].num_rows for n in filled)
        return Partitions(self._cluster, [parts[n] for n in filled], rows)

    def _check_facts(self, facts: list[Facts]) -> None:
        """:raise ValueError: if all partitions together are not valid data."""
        some = [fact for fact in facts if fact.num_rows]
        if not any(fact.weighs for fact in some):
            raise ValueError(
                "sample_weight must not be all zero" if some else "the Dask data have no rows"
            )
        labels = [fact.labels for fact in some if fact.labels is not None]
        distinct = np.unique(np.concatenate(labels or [()]))
        if len(labels) == len(some) and len(distinct) <= MOST_LABELS:
            self._asked.labels(distinct[:, None])


def _scaled(factor: float, batch: Any) -> Any:
    return batch._replace(weight=batch.weight * factor)
