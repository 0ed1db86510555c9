"""Data seen through a model: projected once where memory allows, else chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from .natural import Natural
from .statistics import Rows

#: Projected features up to this size stay in memory (bytes).
CACHE_BYTES = 2**28
#: Feature entries of a chunk: large enough for fast products, small enough for any machine.
CHUNK_ENTRIES = 2**21


class EngineModel(Protocol):
    """What the algorithms ask of a model."""

    likelihood: Likelihood
    num_data: Any

    @property
    def num_features(self) -> tuple[int, int]:
        """:return: number of latent functions L and of features M of each."""

    @property
    def num_feature_groups(self) -> int:
        """:return: 1 where all latent functions share their features, else L."""

    @property
    def jitter(self) -> float:
        """:return: what is added to the diagonal of the prior's covariance."""

    def projector(self) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, tf.Tensor]]:
        """:return: X [N, D] -> features [G, N, M], residual [N, .], prior mean [N, .]."""

    def natural(self) -> Natural:
        """:return: q in natural parameters."""

    def assign_natural(self, natural: Natural) -> None:
        """Store q."""


def shares_shifts(model: EngineModel) -> bool:
    """:return: whether adding one function to all latent ones costs prior and nothing else."""
    invariant = getattr(model.likelihood, "shift_invariant", False)
    return bool(invariant) and model.num_feature_groups == 1


def chunk_rows(model: EngineModel) -> int:
    """:return: rows to look at together, so that a chunk takes some 16 MB an array."""
    num_latents, num_features = model.num_features
    # A chunk also holds what a likelihood makes of it: some 100 quadrature nodes per latent.
    width = num_latents * max(num_features, 128)
    return int(np.clip(CHUNK_ENTRIES // width, 64, 2**14))


class View:
    """
    The rows of a data set as `Rows`, in chunks or by index, at the hyperparameters that the model
    had when the view was made.
    """

    def __init__(
        self,
        model: EngineModel,
        X: AnyNDArray,
        Y: AnyNDArray,
        weight: AnyNDArray,
    ) -> None:
        """
        :param X: [N, D], Y: [N, P], weight: [N, 1].
        """
        self._project = model.projector()
        self._data = (X, Y, weight)
        self.chunk_rows = chunk_rows(model)
        entries = model.num_feature_groups * model.num_features[1]
        self._cached = len(X) * entries * X.dtype.itemsize <= CACHE_BYTES
        self._chunks: dict[tf.DType, list[Rows]] = {}

    def __len__(self) -> int:
        return len(self._data[0])

    def chunks(self, dtype: tf.DType) -> Iterator[Rows]:
        """
        Iterate over all rows, chunk by chunk.

        :param dtype: of the features, and hence of the large products.
        """
        if self._cached:
            if dtype not in self._chunks:
                self._chunks[dtype] = [self._cast(rows, dtype) for rows in self._projected()]
            yield from self._chunks[dtype]
        else:
            yield from (self._cast(rows, dtype) for rows in self._projected())

    def take(self, index: AnyNDArray) -> tuple[Rows, AnyNDArray]:
        """
        :param index: row numbers, of any shape.
        :return: rows that hold them, and where in these rows each stands (same shape as `index`).
        """
        if not self._cached:
            return self._rows(index.reshape(-1)), np.arange(index.size).reshape(index.shape)
        chunks = list(self._projected())
        if len(chunks) > 1:
            self._store([Rows.concatenate(chunks)])
        return self._chunks[self._dtype][0], index

    @property
    def _dtype(self) -> tf.DType:
        return tf.as_dtype(self._data[0].dtype)

    def _store(self, chunks: list[Rows]) -> None:
        self._chunks[self._dtype] = chunks

    def _projected(self) -> Iterator[Rows]:
        """Chunks in the dtype of the data, from memory where they are kept."""
        if self._dtype in self._chunks:
            yield from self._chunks[self._dtype]
            return
        starts = range(0, len(self), self.chunk_rows)
        chunks = (self._rows(slice(start, start + self.chunk_rows)) for start in starts)
        if not self._cached:
            yield from chunks
            return
        self._store(list(chunks))
        yield from self._chunks[self._dtype]

    def _rows(self, index: Any) -> Rows:
        X, Y, weight = (tf.convert_to_tensor(array[index]) for array in self._data)
        return Rows(X, Y, weight, *self._project(X))

    @staticmethod
    def _cast(rows: Rows, dtype: tf.DType) -> Rows:
        return rows._replace(features=tf.cast(rows.features, dtype))
