"""Data projected by a model: once if memory allows, else chunk by chunk in each pass.

Features that are not kept exist only inside the graph that sums them, part by part.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, cast

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow import Parameter
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Constant, Kernel, MultioutputKernel, Product, Stationary, Sum
from gpflow.likelihoods import Likelihood

from ..data.batch import Batch, take
from ..data.sources import Remote, Source, closed_at_end
from .contracts import Model, chunk_rows
from .natural import Gaussian, Natural, inverse_of_lower
from .projection import Features, Prior, Projected, compiled_project, project
from .shared_graph import Compiled
from .statistics import Statistics, accumulate, compiled_accumulate, marginals

#: Single precision suffices for features if every entry at the inducing points, where distances are
#: 0 and rounding is worst, has an error below this fraction of the prior standard deviation of f.
SINGLE_ERROR = 4e-6

#: Number of parts of a chunk computed at once, to keep all cores busy. (Four whole chunks at once
#: took 8 to 26 % more processor time, and four times the memory.)
_PARALLEL = 2


class Projection(NamedTuple):
    """Settings of the projection of rows."""

    Lz: tf.Tensor  #: [G, M, M], see `prior_factor`
    inverse: tf.Tensor  #: [G, M, M], Lz^-1 in the dtype of the large products
    single: tf.Tensor  #: [], whether single precision suffices for features
    part_rows: tf.Tensor  #: [], rows to project together


class Unprojected(NamedTuple):
    """Rows of a source, and the settings of their projection."""

    batch: Batch
    how: Projection


@check_shapes("return.Lz: [G, M, M]", "return.inverse: [G, M, M]")
def projection_of(prior: Prior, Lz: tf.Tensor, chunk_rows: int, dtype: tf.DType) -> Projection:
    """:return: the projection for products in `dtype`, at the current hyperparameters."""
    inverse = tf.cast(inverse_of_lower(Lz), dtype)
    single = tf.constant(False)
    if dtype != Lz.dtype and has_single(prior):
        single = _single_is_enough.bind(prior)(Lz, inverse)
    return Projection(Lz, inverse, single, tf.constant(max(1, chunk_rows // _PARALLEL)))


def has_single(prior: Prior) -> bool:
    """:return: True if features can be computed in single precision, from shifted X and Z."""
    return isinstance(prior.inducing_variable, InducingPoints) and _is_stationary(prior.kernel)


def _is_stationary(kernel: Kernel) -> bool:
    """:return: True for GPflow's stationary kernels; others may not support single precision."""
    if isinstance(kernel, MultioutputKernel) or not type(kernel).__module__.startswith("gpflow."):
        return False
    if isinstance(kernel, (Sum, Product)):
        return all(map(_is_stationary, kernel.kernels))
    return isinstance(kernel, (Stationary, Constant))


def _cast(kernel: Kernel, dtype: tf.DType) -> Kernel:
    """:return: a stationary kernel with its parameters in this type."""
    made = copy.copy(kernel)
    for name, value in vars(kernel).items():
        if isinstance(value, (tf.Tensor, Parameter)):
            made.__dict__[name] = tf.cast(value, dtype)
    if isinstance(kernel, (Sum, Product)):
        made.__dict__["kernels"] = [_cast(part, dtype) for part in kernel.kernels]
    return made


def _phi_in_single(prior: Prior, X: tf.Tensor, inverse: tf.Tensor) -> tf.Tensor:
    """:return: phi [1, N, M] = Kfu Lz^-T, all in the type of `inverse`."""
    # Subtract the inducing points' mean: offsets amplify the rounding of distances.
    Z = tf.convert_to_tensor(prior.inducing_variable.Z)
    centre = tf.reduce_mean(Z, axis=0)
    X, Z = (tf.cast(points - centre, inverse.dtype) for points in (X, Z))
    kernel = _cast(prior.kernel, inverse.dtype)
    return tf.matmul(kernel(X, Z)[None], inverse, transpose_b=True)


@Compiled
def _single_is_enough(prior: Prior, Lz: tf.Tensor, inverse: tf.Tensor) -> tf.Tensor:
    Z = tf.convert_to_tensor(prior.inducing_variable.Z)
    phi = project(prior, Z, Lz).phi
    error = tf.reduce_max(tf.abs(tf.cast(_phi_in_single(prior, Z, inverse), Lz.dtype) - phi))
    # NaN counts as too large an error.
    return error <= SINGLE_ERROR * tf.sqrt(tf.reduce_max(prior.kernel(Z, full_cov=False)))


def _project(prior: Prior, batch: Batch, how: Projection) -> Projected:
    """:return: the rows projected, phi in the dtype of the large products."""
    dtype = how.inverse.dtype

    def double() -> Features:
        return Projected(batch, project(prior, batch.X, how.Lz)).in_precision(dtype).features

    def rounded() -> Features:
        phi = _phi_in_single(prior, batch.X, how.inverse)
        explained = tf.cast(tf.reduce_sum(tf.square(phi[0]), axis=-1), how.Lz.dtype)
        Kff = prior.kernel(batch.X, full_cov=False)
        return Features(phi, (Kff - explained)[:, None], prior.mean_function(batch.X))

    if dtype == how.Lz.dtype or not has_single(prior):
        return Projected(batch, double())
    return Projected(batch, tf.cond(how.single, rounded, double))


@Compiled
@check_shapes("q.c: [L, M]", "chunk.batch.X: [N, D]", "return.sums.h: [L, M]")
def compiled_unprojected_statistics(
    likelihood: Likelihood, prior: Prior, q: Gaussian, chunk: Unprojected
) -> Statistics:
    """`accumulate` under q(s) for unprojected rows."""
    batch, (_, _, _, size) = chunk
    number = tf.shape(batch.Y)[0]

    def add(start: tf.Tensor, total: Statistics) -> tuple[tf.Tensor, Statistics]:
        part = batch.between(start, start + size)
        rows = _project(prior, part, chunk.how)
        seen = accumulate(likelihood, rows, marginals(rows.features.phi, q))
        return start + size, tf.nest.map_structure(_add, total, seen)

    nothing = Statistics(Natural(tf.zeros_like(q.c), tf.zeros_like(q.R)), tf.zeros([], q.c.dtype))
    _, total = tf.while_loop(
        lambda start, _: start < number, add, (0, nothing), parallel_iterations=_PARALLEL
    )
    return cast(Statistics, total)


def _add(total: tf.Tensor, part: tf.Tensor) -> tf.Tensor:
    """Keep the static shape of `total` in a loop if the shape of `part` is unknown."""
    return tf.ensure_shape(total + part, total.shape)


#: Projected features up to this size stay in memory (bytes).
CACHE_BYTES = 2**28

#: If features are not kept, rows are read in blocks of this size (bytes of X): large enough to make
#: the overhead of Python negligible.
BLOCK_BYTES = 2**24

#: Products may run in single precision from BIG_PASS feature entries (N times L M) on. Single
#: precision resolves relative changes of the bound down to FINEST_SINGLE_TOL.
BIG_PASS = 2e5
FINEST_SINGLE_TOL = 1e-6


def product_dtype(entries: int, tol: float) -> tf.DType:
    """
    :param entries: N times L M, the number of feature entries.
    :param tol: the required relative resolution of the bound.
    :return: single precision if products are large and `tol` allows it, else the default float.
    """
    enough = entries >= BIG_PASS and tol >= FINEST_SINGLE_TOL
    return single_precision() if enough else tf.as_dtype(default_float())


def single_precision() -> tf.DType:
    """
    :return: single precision; or the default float if a GPU would round the factors of products to
        ten bits. (This is TensorFloat-32, TensorFlow's default since Nvidia's compute capability
        8.0.)
    """
    rounded = tf.config.experimental.tensor_float_32_execution_enabled()
    for gpu in tf.config.get_visible_devices("GPU"):
        details = tf.config.experimental.get_device_details(gpu)
        if rounded and tuple(details.get("compute_capability", ())) >= (8, 0):
            return tf.as_dtype(default_float())
    return tf.float32


class ProjectedData(Source):
    """
    The rows of a source, projected with the hyperparameters at construction.

    :ivar dtype: precision of the features in `chunks`, and hence of the large products.
    """

    def __init__(self, model: Model, source: Source) -> None:
        self.source = source
        self.indexed = source.indexed
        self.dtype = tf.as_dtype(default_float())
        self._prior = model.prior
        self._Lz = model.prior_factor()
        self._project = partial(_projected, compiled_project.bind(model.prior), self._Lz)
        self.chunk_rows = chunk_rows(model)
        entries = model.num_feature_groups * model.q_shape[1]
        self._row_bytes = entries * self.dtype.size
        self._kept: dict[tf.DType, list[Projected]] = {}
        self._remotes: dict[tf.DType, Remote] = {}

    @property
    def num_rows(self) -> int:
        """:return: N."""
        return self.source.num_rows

    @property
    def one_chunk(self) -> bool:
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
            project = partial(self._project, self.dtype)
            self._remotes = {self.dtype: rows.projected(project, keep=self.cached)}
        return self._remotes.get(self.dtype)

    def project(self, batch: Batch) -> Projected:
        """:return: the projected rows, in GPflow's default float."""
        return self._project(tf.as_dtype(default_float()), batch)

    def chunks(self) -> Iterator[Projected]:
        """:return: an iterator over all rows, with features in `dtype`."""
        if self.cached:
            yield from self._in(self.dtype)
            return
        with closed_at_end(self.source.chunks()) as batches:
            for batch in batches:
                yield self._project(self.dtype, batch)

    def everything(self) -> Projected:
        """:return: all rows in memory."""
        parts = self._in(tf.as_dtype(default_float()))
        parts[:] = [Projected.joined(parts)]
        return parts[0]

    def _in(self, dtype: tf.DType) -> list[Projected]:
        exact = tf.as_dtype(default_float())
        if not self._kept:
            with closed_at_end(self.source.chunks()) as batches:
                self._kept[exact] = [self.project(batch) for batch in batches]
        if dtype not in self._kept:
            self._kept[dtype] = [rows.in_precision(dtype) for rows in self._kept[exact]]
        return self._kept[dtype]

    def gather(self, index: AnyNDArray) -> tuple[Projected, AnyNDArray]:
        """See `gpflow_bsvm.data.sources.Source.gather`; gives all rows if features are kept."""
        if self.cached:
            return self.everything(), index
        rows, index = self.source.gather(index)
        if len(rows.Y) != index.size:
            rows = take(rows, index.reshape(-1))
            index = np.arange(index.size).reshape(index.shape)
        return self.project(rows), index

    def stream(self, position: int, batch_size: int) -> Iterator[Batch]:
        return self.source.stream(position, batch_size)

    def summed(self, likelihood: Likelihood) -> tuple[Source, Callable[..., Statistics]]:
        """
        :return: rows (`Projected` if features are kept, else `Unprojected`s), and a function that
            computes a chunk's statistics under q(s).
        """
        if self.cached:
            return self, compiled_accumulate.bind(likelihood)
        how = partial(projection_of, self._prior, self._Lz, self.chunk_rows)
        statistics = compiled_unprojected_statistics.bind(likelihood, self._prior)
        return _UnprojectedRows(self, how), statistics


class _UnprojectedRows(Source):
    """The rows of `ProjectedData` in `Unprojected` blocks, each of several chunks."""

    def __init__(self, data: ProjectedData, how: Callable[[tf.DType], Projection]) -> None:
        self._data = data
        self._how = functools.cache(how)

    @property
    def remote(self) -> Remote | None:
        rows = self._data.source.remote
        return rows and rows.projected(partial(Unprojected, how=self._how(self._data.dtype)))

    def chunks(self) -> Iterator[Unprojected]:
        how = self._how(self._data.dtype)
        with closed_at_end(self._data.source.in_blocks(BLOCK_BYTES)) as batches:
            for batch in batches:
                yield Unprojected(batch, how)


def _projected(
    features: Callable[..., Features], Lz: tf.Tensor, dtype: tf.DType, batch: Batch
) -> Projected:
    return Projected(batch, features(batch.X, Lz)).in_precision(dtype)
