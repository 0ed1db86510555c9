"""Data projected by a model: once if memory allows, else chunk by chunk in each pass."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..data.batch import Batch, take
from ..data.sources import Derived, Remote, Source, closed_at_end
from .contracts import Model, chunk_rows
from .projection import Features, Projected, Projector
from .statistics import Statistics, compiled_accumulate
from .unprojected import Unprojected, compiled_unprojected_statistics, projection_of

#: Projected features up to this size stay in memory (bytes).
CACHE_BYTES = 2**28

#: If features are not kept, rows are read in blocks of this size (bytes of X): large enough to make
#: the overhead of Python negligible.
BLOCK_BYTES = 2**24

#: Products may run in single precision from this number of feature entries (N times L M) on; single
#: precision resolves relative changes of the bound down to this tolerance.
BIG_PASS = 2e5
FINEST_SINGLE_TOL = 1e-6


def num_entries(model: Model, source: Source) -> int:
    """:return: N times L M, the number of feature entries."""
    return source.num_rows * math.prod(model.q_shape)


def product_dtype(entries: int, tol: float) -> tf.DType:
    """
    :param tol: the required relative resolution of the bound.
    :return: single precision if products are large and it suffices, else the default float.
    """
    single = entries >= BIG_PASS and tol >= FINEST_SINGLE_TOL
    return tf.float32 if single else tf.as_dtype(default_float())


class ProjectedData(Derived):
    """
    The rows of a source as `Projected`, in chunks or minibatches, with the hyperparameters at
    construction.

    :ivar dtype: precision of the features in `chunks`, and hence of the large products.
    """

    def __init__(self, model: Model, source: Source) -> None:
        super().__init__(source)
        self.dtype = tf.as_dtype(default_float())
        self._project = Projector(model.prior, model.prior_factor())
        self.chunk_rows = chunk_rows(model)
        entries = model.num_feature_groups * model.q_shape[1]
        self._row_bytes = entries * self.dtype.size
        self._kept: dict[tf.DType, list[Projected]] = {}
        self._remotes: dict[tf.DType, Remote] = {}

    @property
    def one_chunk(self) -> bool:
        """See `gpflow_bsvm.data.sources.Source`."""
        return self.source.one_chunk

    @property
    def cached(self) -> bool:
        """:return: True if features are kept."""
        if self.source.remote is not None:
            return self.source.remote.has_room(self.num_rows * self._row_bytes)
        row_bytes = self._row_bytes + self.source.row_bytes
        return bool(self.num_rows * row_bytes <= CACHE_BYTES)

    @property
    def remote(self) -> Remote | None:
        """See `gpflow_bsvm.data.sources.Source`; features in `dtype`."""
        rows = self.source.remote
        if rows is not None and self.dtype not in self._remotes:
            project = functools.partial(_in_precision, self._project, self.dtype)
            self._remotes = {self.dtype: rows.projected(project, keep=self.cached)}
        return self._remotes.get(self.dtype)

    def project(self, batch: Batch) -> Projected:
        """:return: the projected rows, in GPflow's default float."""
        return Projected(batch, self._project(batch.X))

    def chunks(self) -> Iterator[Projected]:
        """:return: an iterator over all rows, with features in `dtype`."""
        if self.cached:
            yield from self._in(self.dtype)
            return
        with closed_at_end(self.source.chunks()) as batches:
            for batch in batches:
                yield _in_precision(self._project, self.dtype, batch)

    def everything(self) -> Projected:
        """:return: all rows in memory."""
        parts = self._in(tf.as_dtype(default_float()))
        if len(parts) > 1:
            parts[:] = [Projected.joined(parts)]
        return parts[0]

    def _in(self, dtype: tf.DType) -> list[Projected]:
        exact = tf.as_dtype(default_float())
        if not self._kept:
            with closed_at_end(self.source.chunks()) as batches:
                self._kept[exact] = [Projected(batch, self._project(batch.X)) for batch in batches]
        if dtype not in self._kept:
            self._kept[dtype] = [rows.in_precision(dtype) for rows in self._kept[exact]]
        return self._kept[dtype]

    def gather(self, index: AnyNDArray) -> tuple[Projected, AnyNDArray]:
        """See `gpflow_bsvm.data.sources.Source.gather`: all rows if features are kept."""
        if self.cached:
            return self.everything(), index
        rows, index = self.source.gather(index)
        if len(rows.Y) != index.size:
            rows = take(rows, index.reshape(-1))
            index = np.arange(index.size).reshape(index.shape)
        return self.project(rows), index

    def stream(self, position: int, batch_size: int) -> Iterator[Batch]:
        """See `gpflow_bsvm.data.sources.Source.stream`."""
        return self.source.stream(position, batch_size)

    def summed(self, likelihood: Likelihood) -> tuple[Source, Callable[..., Statistics]]:
        """
        :return: rows (`Projected` if features are kept, else `Unprojected`s), and a function that
            computes a chunk's statistics under q(s).
        """
        if self.cached:
            return self, compiled_accumulate.bind(likelihood)
        prior = self._project.prior
        return _UnprojectedRows(self, self._project), compiled_unprojected_statistics.bind(
            likelihood, prior
        )


class _UnprojectedRows(Source):
    """The rows of `ProjectedData` as `Unprojected`s of several chunks."""

    def __init__(self, data: ProjectedData, projector: Projector) -> None:
        self._data = data
        self._how = functools.cache(functools.partial(projection_of, projector, data.chunk_rows))

    @property
    def remote(self) -> Remote | None:
        """See `Source`."""
        rows = self._data.source.remote
        return rows and rows.projected(
            functools.partial(Unprojected, how=self._how(self._data.dtype))
        )

    def chunks(self) -> Iterator[Unprojected]:
        """See `Source`."""
        how = self._how(self._data.dtype)
        with closed_at_end(self._data.source.in_blocks(BLOCK_BYTES)) as batches:
            for batch in batches:
                yield Unprojected(batch, how)


def _in_precision(
    project: Callable[[tf.Tensor], Features], dtype: tf.DType, batch: Batch
) -> Projected:
    return Projected(batch, project(batch.X)).in_precision(dtype)
