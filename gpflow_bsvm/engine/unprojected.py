"""Statistics of rows without stored features: project and sum part by part, in one graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import gpflow
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import (
    Constant,
    Kernel,
    MultioutputKernel,
    Product,
    Stationary,
    Sum,
)

from ..data.batch import Batch
from .natural import Gaussian, Natural
from .prior import Prior
from .projection import Features, Projected, Projector, project
from .shared_graph import Compiled
from .statistics import Statistics, accumulate, marginals

#: Single precision suffices for features if every entry at the inducing points, where distances are
#: 0 and rounding is worst, has an error below this fraction of the prior's deviation.
SINGLE_ERROR = 4e-6

#: Number of parts of a chunk computed at once, to keep all cores busy. (Four whole chunks took 8 to
#: 26 % more processor time, and four times the memory.)
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
def projection_of(projector: Projector, chunk_rows: int, dtype: tf.DType) -> Projection:
    """:return: the projection for products in `dtype`, at the current hyperparameters."""
    prior = projector.prior
    Lz = projector.Lz
    identity = tf.eye(tf.shape(Lz)[-1], batch_shape=tf.shape(Lz)[:-2], dtype=Lz.dtype)
    inverse = tf.cast(tf.linalg.triangular_solve(Lz, identity), dtype)
    single = tf.constant(False)
    if dtype != Lz.dtype and has_single(prior):
        single = _single_is_enough.bind(prior)(Lz, inverse)
    return Projection(Lz, inverse, single, tf.constant(max(1, chunk_rows // _PARALLEL)))


def has_single(prior: Prior) -> bool:
    """:return: True if features can be computed in single precision, from shifted X and Z."""
    points = isinstance(prior.inducing_variable, InducingPoints)
    return points and _is_stationary(prior.kernel)


def _is_stationary(kernel: Kernel) -> bool:
    """:return: True for GPflow's stationary kernels; others may not support single precision."""
    if isinstance(kernel, MultioutputKernel) or not type(kernel).__module__.startswith("gpflow."):
        return False
    if isinstance(kernel, (Sum, Product)):
        return all(map(_is_stationary, kernel.kernels))
    return isinstance(kernel, (Stationary, Constant))


def _phi_in_single(prior: Prior, single: Prior, X: tf.Tensor, inverse: tf.Tensor) -> tf.Tensor:
    """:return: phi [1, N, M] = Kfu Lz^-T; `single` is `prior` in single precision."""
    # Subtract the inducing points' mean: offsets amplify the rounding of distances.
    Z = tf.convert_to_tensor(prior.inducing_variable.Z)
    centre = tf.reduce_mean(Z, axis=0)
    X, Z = (tf.cast(points - centre, inverse.dtype) for points in (X, Z))
    config = gpflow.config.config()
    with gpflow.config.as_context(
        gpflow.config.Config(float=inverse.dtype.as_numpy_dtype, jitter=config.jitter)
    ):
        return tf.matmul(single.kernel(X, Z)[None], inverse, transpose_b=True)


@partial(Compiled, rebuilds=True)
def _single_is_enough(
    rebuild: Callable[..., Any], values: list[tf.Tensor], Lz: tf.Tensor, inverse: tf.Tensor
) -> tf.Tensor:
    (prior,), (single,) = rebuild(values), rebuild(values, inverse.dtype)
    Z = tf.convert_to_tensor(prior.inducing_variable.Z)
    phi = project(prior, Z, Lz).phi
    error = tf.reduce_max(
        tf.abs(tf.cast(_phi_in_single(prior, single, Z, inverse), Lz.dtype) - phi)
    )
    # NaN counts as too large an error.
    return error <= SINGLE_ERROR * tf.sqrt(tf.reduce_max(prior.kernel(Z, full_cov=False)))


def _project(prior: Prior, single: Prior, batch: Batch, how: Projection) -> Projected:
    """:return: the rows projected, phi in the dtype of the large products."""
    dtype = how.inverse.dtype

    def double() -> Features:
        return Projected(batch, project(prior, batch.X, how.Lz)).in_precision(dtype).features

    def rounded() -> Features:
        phi = _phi_in_single(prior, single, batch.X, how.inverse)
        explained = tf.cast(tf.reduce_sum(tf.square(phi[0]), axis=-1), how.Lz.dtype)
        Kff = prior.kernel(batch.X, full_cov=False)
        return Features(phi, (Kff - explained)[:, None], prior.mean_function(batch.X))

    if dtype == how.Lz.dtype or not has_single(prior):
        return Projected(batch, double())
    return Projected(batch, tf.cond(how.single, rounded, double))


@partial(Compiled, rebuilds=True)
@check_shapes("q.c: [L, M]", "chunk.batch.X: [N, D]", "return.sums.h: [L, M]")
def compiled_unprojected_statistics(
    rebuild: Callable[..., Any], values: list[tf.Tensor], q: Gaussian, chunk: Unprojected
) -> Statistics:
    """
    `accumulate` under q(s) for unprojected rows; the modules are likelihood and prior. Features
    stay in the graph, only a few parts at a time.
    """
    likelihood, prior = rebuild(values)
    single = rebuild(values, chunk.how.inverse.dtype)[1]
    batch, (_, _, _, size) = chunk
    number = tf.shape(batch.Y)[0]

    def add(start: tf.Tensor, total: Statistics) -> tuple[tf.Tensor, Statistics]:
        part = batch.between(start, start + size)
        rows = _project(prior, single, part, chunk.how)
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
