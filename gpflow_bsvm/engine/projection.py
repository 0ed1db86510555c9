"""project: models are Gaussian in whitened features, f(x) = Phi(x) s + m(x) + residual."""

from __future__ import annotations

from typing import NamedTuple, cast

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.covariances import Kuf
from gpflow.kernels import MultioutputKernel

from ..data.batch import Batch, joined, take
from .prior import Prior, prior_factor
from .shared_graph import Compiled


class Floats(NamedTuple):
    """Floating-point options of features."""

    jitter: tf.Tensor  #: [], jitter of Kuu
    #: [], 1 in the dtype of subsequent large products; None: the dtype of Kuu
    one: tf.Tensor | None = None


class Features(NamedTuple):
    """The features of rows. G is 1 if all latent functions share their features, else L."""

    phi: tf.Tensor  #: [G, N, M], projections on the whitened inducing variables
    residual: tf.Tensor  #: [N, L] or [N, 1], k(x, x) - |phi|^2
    mean: tf.Tensor  #: [N, L] or [N, 1], prior mean


class Projected(NamedTuple):
    """Rows, projected by a model."""

    batch: Batch
    features: Features

    @check_shapes("index: [B]", "return.features.phi: [G, B, M]")
    def take(self, index: tf.Tensor) -> Projected:
        """:return: the rows at these indices, in order."""
        phi = tf.gather(self.features.phi, index, axis=1)
        residual, mean = take((self.features.residual, self.features.mean), index)
        return Projected(take(self.batch, index), Features(phi, residual, mean))

    @check_shapes("return.features.phi: [G, N, M]")
    def in_precision(self, dtype: tf.DType) -> Projected:
        """:return: the rows with phi, and hence the large products, in `dtype`."""
        phi = tf.cast(self.features.phi, dtype)
        return self._replace(features=self.features._replace(phi=phi))

    def without_inputs(self) -> Projected:
        """:return: the rows without X, because X may be wide."""
        return self._replace(batch=self.batch._replace(X=self.batch.X[:, :0]))

    @staticmethod
    def joined(parts: list[Projected]) -> Projected:
        """:return: the concatenated rows of all parts."""
        if len(parts) == 1:
            return parts[0]
        phi = tf.concat([part.features.phi for part in parts], axis=1)
        columns = [(part.batch, part.features.residual, part.features.mean) for part in parts]
        batch, residual, mean = joined(columns)
        return Projected(batch, Features(phi, residual, mean))


@check_shapes("X: [N, D]", "Lz: [G, M, M]", "return.phi: [G, N, M]", "return.residual: [N, .]")
def project(prior: Prior, X: tf.Tensor, Lz: tf.Tensor) -> Features:
    """:return: phi = (Lz^-1 Kuf)^T, with Lz by `prior_factor`, and the residual prior variance."""
    kernel = prior.kernel
    Kuf_ = Kuf(prior.inducing_variable, kernel, X)
    Kuf_ = Kuf_[None] if len(Kuf_.shape) == 2 else Kuf_  # [G, M, N]
    A = tf.linalg.triangular_solve(Lz, Kuf_)
    if isinstance(kernel, MultioutputKernel):
        Kff = kernel(X, full_cov=False, full_output_cov=False)  # [N, L]
    else:
        Kff = kernel(X, full_cov=False)[:, None]
    explained = tf.linalg.matrix_transpose(tf.reduce_sum(tf.square(A), axis=-2))  # [N, G]
    return Features(tf.linalg.matrix_transpose(A), Kff - explained, prior.mean_function(X))


@check_shapes("batch.X: [N, D]", "how.jitter: []", "return.features.phi: [G, N, M]")
def project_batch(prior: Prior, batch: Batch, how: Floats) -> Projected:
    """:return: rows projected with the current hyperparameters, inside a graph."""
    rows = Projected(batch, project(prior, batch.X, prior_factor(prior, how.jitter)))
    return rows if how.one is None else rows.in_precision(how.one.dtype)


compiled_project = Compiled(project)


class Projector:
    """Map X [N, D] to features, with the hyperparameters of the factor `Lz` of `prior`."""

    def __init__(self, prior: Prior, Lz: tf.Tensor) -> None:
        self.prior = prior
        self.Lz = Lz
        self._project = compiled_project.bind(prior)

    @check_shapes("X: [N, D]", "return.phi: [G, N, M]", "return.residual: [N, .]")
    def __call__(self, X: tf.Tensor) -> Features:
        """:return: the features of these rows."""
        return cast(Features, self._project(X, self.Lz))
