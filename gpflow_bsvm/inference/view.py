"""Data seen through a model: projected once where memory allows, else chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from .solve import Natural
from .statistics import Rows

#: Projected features up to this size stay in memory (bytes).
CACHE_BYTES = 2**28
#: Feature entries of a chunk: large enough for fast products, small enough for any machine.
CHUNK_ENTRIES = 2**21


class EngineModel(Protocol):
    """What the algorithms ask of a model."""

    likelihood: Likelihood
    num_data: Any
    num_latent_gps: int

    def projector(self) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, tf.Tensor]]:
        """:return: X [N, D] -> features [G, N, M], residual [N, .], prior mean [N, .]."""

    def natural(self) -> Natural:
        """:return: q in natural parameters."""

    def assign_natural(self, natural: Natural) -> None:
        """Store q."""


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
        *,
        products: tf.DType | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        """
        :param X: [N, D], Y: [N, P], weight: [N, 1].
        :param products: dtype of the features and hence of the large products (None: that of X).
        :param cache_bytes: keep all features in memory if they need no more than this.
        """
        self._project = model.projector()
        self._data = (X, Y, weight)
        self._products = products or tf.as_dtype(X.dtype)
        first = self._rows(slice(0, 1))
        groups, _, num_inducing = first.features.shape
        entries = groups * num_inducing
        width = max(groups, model.num_latent_gps) * num_inducing
        self.chunk_rows = int(np.clip(CHUNK_ENTRIES // width, 64, 2**14))
        self._cached = len(X) * entries * self._products.size <= cache_bytes
        self._chunks: list[Rows] | None = None
        self._all: Rows | None = None

    def __len__(self) -> int:
        return len(self._data[0])

    @property
    def is_double(self) -> bool:
        """Whether the large products run in double precision."""
        return bool(self._products == tf.float64)

    def __iter__(self) -> Iterator[Rows]:
        """Iterate over all rows, chunk by chunk."""
        if self._chunks is not None:
            yield from self._chunks
            return
        chunks = []
        for start in range(0, len(self), self.chunk_rows):
            chunk = self._rows(slice(start, start + self.chunk_rows))
            if self._cached:
                chunks.append(chunk)
            yield chunk
        if self._cached:
            self._chunks = chunks

    def take(self, index: AnyNDArray) -> tuple[Rows, AnyNDArray]:
        """
        :param index: row numbers, of any shape.
        :return: rows that hold them, and where in these rows each stands (same shape as `index`).
        """
        if not self._cached:
            return self._rows(index.reshape(-1)), np.arange(index.size).reshape(index.shape)
        if self._all is None:
            columns = zip(*self)
            self._all = Rows(
                *(
                    tf.concat(column, axis=1 if name == "features" else 0)
                    for name, column in zip(Rows._fields, columns)
                )
            )
        return self._all, index

    def _rows(self, index: Any) -> Rows:
        X, Y, weight = (tf.convert_to_tensor(array[index]) for array in self._data)
        features, residual, prior_mean = self._project(X)
        return Rows(X, Y, weight, tf.cast(features, self._products), residual, prior_mean)
