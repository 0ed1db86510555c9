"""Rows that are not in memory, converted to inputs of an estimator's model."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import tensorflow as tf
from gpflow.base import AnyNDArray
from sklearn.preprocessing import StandardScaler

from ..cluster.dask_data import dask_reader, is_of_dask
from ..data.batch import Batch
from ..data.readers import Reader
from ..data.sources import Derived, Remote, Source, closed_at_end
from .labels import Encoding

CHUNK_ROWS = 2**14


def source_of(X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """
    :return: a reader of rows with their labels; None for arrays in memory.
    :raise ValueError: if labels or weights are given besides a source with its own.
    """
    if is_of_dask(X):
        return dask_reader(X, y, sample_weight)
    if not isinstance(X, (Reader, Source, tf.data.Dataset)):
        return None
    if y is not None or sample_weight is not None:
        raise ValueError(
            "rows read piece by piece include their labels and weights (files by target=... and "
            "weight=...): leave out y and sample_weight"
        )
    return X


class Prepared(Derived):
    """The rows of a source as inputs of an estimator's model: scaled, with encoded labels."""

    def __init__(
        self,
        source: Source,
        scaler: StandardScaler | None,
        encoding: Encoding | None = None,
    ) -> None:
        """:param encoding: encoding of labels, see `labels`; None: labels are ignored."""
        super().__init__(source)
        self._prepare = partial(_prepared, scaler, encoding)
        self.maker = source.maker

    @property
    def row_bytes(self) -> int:
        """See `Source`."""
        return self.source.row_bytes

    def digests(self) -> Mapping[str, str]:
        """See `Source`."""
        return self.source.digests()

    @property
    def marks(self) -> Mapping[str, str]:
        """See `Source`."""
        return self.source.marks

    def chunks(self) -> Iterator[Batch]:
        """See `Source`."""
        return self._each(self.source.chunks())

    def scaled(self, factor: float) -> Prepared:
        """See `Source`."""
        other = copy.copy(self)
        other.source = self.source.scaled(factor)
        return other

    def gather(self, index: AnyNDArray) -> tuple[Batch, AnyNDArray]:
        """See `Source`."""
        rows, where = self.source.gather(index)
        return self._prepare(rows), where

    def stream(self, position: int, batch_size: int) -> Iterator[Batch]:
        """See `Source`."""
        return self._each(self.source.stream(position, batch_size))

    def _each(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        with closed_at_end(batches) as open_batches:
            for batch in open_batches:
                yield self._prepare(batch)

    @property
    def remote(self) -> Remote | None:
        """See `Source`."""
        remote = self.source.remote
        return None if remote is None else remote.projected(self._prepare)


def _prepared(scaler: StandardScaler | None, encoding: Encoding | None, batch: Batch) -> Batch:
    X = batch.X if scaler is None else tf.constant(scaler.transform(batch.X), batch.X.dtype)
    if encoding is None:
        return batch._replace(X=X)
    targets, factors = encoding(batch.Y.numpy())
    return Batch(X, tf.constant(targets, batch.Y.dtype), batch.weight * factors)
