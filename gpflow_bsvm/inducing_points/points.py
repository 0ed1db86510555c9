"""Inducing points, all distinct: initial choices, and changes during training."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from sklearn.cluster import KMeans

from ..checks import check_whole
from ..data.batch import take
from ..data.checks import as_matrix, check_weights, duplicate_rows
from ..data.passes import map_over
from ..data.sampling import random_rows
from ..data.sources import ArraySource
from ..engine.contracts import Model, check_model, check_width, chunk_rows, jitter_of, open_all
from ..engine.natural import compiled_solve, root_of_covariance, whiten
from ..engine.projected_data import ProjectedData
from ..engine.projection import check_is_kernel, check_kernel, compiled_project
from ..engine.statistics import compiled_localise
from ..notices import warn

#: Number of rows for k-means; beyond about 20 000 rows, the centers hardly change.
SUBSAMPLE = 20_000


def kmeans(
    X: Any,
    num_inducing: int,
    *,
    seed: int | None = 0,
    subsample: int = SUBSAMPLE,
    max_iter: int = 20,
) -> AnyNDArray:
    """
    Centers of scikit-learn's k-means, started with k-means++ (Wenzel et al. 2017, section 5.5), on
    a random subsample of the rows.

    :param X: [N, D], scaled like the kernel's inputs.
    :param num_inducing: M.
    :param subsample: maximum number of rows to use.
    :param max_iter: maximum number of Lloyd iterations.
    :return: Z [M, D].
    :raise ValueError: if X is not finite and two-dimensional, or M is not in 1..N.
    """
    X, distinct, state = some_rows(X, num_inducing, subsample, seed)
    if len(distinct) <= num_inducing:
        return at_most(distinct, num_inducing)
    model = KMeans(num_inducing, n_init=1, max_iter=max_iter, random_state=state).fit(X)
    return at_most(distinct_rows(model.cluster_centers_.astype(X.dtype)), num_inducing)


def some_rows(
    X: Any, num_inducing: int, subsample: int, seed: int | None
) -> tuple[AnyNDArray, AnyNDArray, int]:
    """:return: the distinct rows of at most `subsample` random rows of X, and a seed."""
    X = checked(X, num_inducing)
    check_whole(1, subsample=subsample)
    generator = np.random.default_rng(seed)
    X = X[random_rows(len(X), max(subsample, num_inducing), generator)]
    return X, distinct_rows(X), int(generator.integers(2**31))


def greedy_variance(
    X: Any,
    max_inducing: int,
    kernel: gpflow.kernels.Kernel,
    *,
    tol: float = 1e-2,
    weight: Any = None,
) -> AnyNDArray:
    """
    Rows of X chosen by greedy conditional variance (Burt et al. 2020): each has the largest
    variance of f given f at the earlier rows. Selection stops when these variances are small.

    The cost is O(N M^2) for the N rows of a random subsample of at most 20 000.

    :param X: [N, D].
    :param max_inducing: maximum number M of points.
    :param kernel: a kernel with a single output.
    :param tol: stop when the sum of the conditional variances is below `tol` times the sum of the
        prior variances; with 0, do not stop early.
    :param weight: [N], non-negative numbers that multiply the rows' variances; the sites'
        precisions w, for example, concentrate points where classes meet. Equal rows count as one
        row with the weights added up.
    :return: Z [M, D].
    :raise ValueError: as in `kmeans`, if weights are not N non-negative numbers, for a kernel with
        several outputs or that rejects X, if no row has a positive variance, if a variance is not
        finite, or for a `tol` outside [0, 1).
    """
    X = checked(X, max_inducing, "max_inducing")
    check_is_kernel(kernel)
    if not 0 <= tol < 1:
        raise ValueError(f"tol must be in [0, 1), got {tol}")
    if isinstance(kernel, gpflow.kernels.MultioutputKernel):
        raise ValueError(
            f"expected a kernel with a single output, got {type(kernel).__name__}: give one of its "
            "latent_kernels"
        )
    check_kernel(kernel, X)
    weight = check_weights(weight, len(X))[:, 0]
    rows = random_rows(len(X), SUBSAMPLE, 0)
    X, place = np.unique(X[rows], axis=0, return_inverse=True)  # independent of the rows' order
    weight = np.bincount(place.reshape(-1), weight[rows])
    residual = _variances(kernel, X, weight)
    enough = tol * np.sum(weight * residual)
    chosen: list[int] = []
    L = np.zeros((max_inducing, len(X)))  # pivoted Cholesky factor of the kernel matrix
    for step in range(min(max_inducing, len(X))):
        left = weight * residual
        pivot = int(np.argmax(left))
        if left[pivot] <= 0 or left.sum() <= enough:
            break
        column = np.asarray(kernel(X[pivot : pivot + 1], X), np.float64)[0]
        L[step] = (column - L[:step, pivot] @ L[:step]) / np.sqrt(residual[pivot])
        residual = np.maximum(residual - np.square(L[step]), 0)
        residual[pivot] = 0
        chosen.append(pivot)
    return np.ascontiguousarray(X[chosen])


def _variances(kernel: gpflow.kernels.Kernel, X: AnyNDArray, weight: AnyNDArray) -> AnyNDArray:
    """:return: [N], the prior variances at the rows."""
    found = np.array(kernel(X, full_cov=False), np.float64)
    if not (np.isfinite(found).all() and (weight * found > 0).any()):
        raise ValueError(
            f"{type(kernel).__name__} must have finite variances at the rows of X, and a positive "
            f"variance at a row of positive weight; they are {found.min():.3g} to "
            f"{found.max():.3g}: standardize X and check the kernel's parameters"
        )
    return found


def checked(X: Any, number: int, name: str = "num_inducing") -> AnyNDArray:
    """:return: X as a floating-point matrix of at least `number` rows; `name` is that option's."""
    X = as_matrix(X, "X")
    check_whole(1, **{name: number})
    if number > len(X):
        raise ValueError(f"{name} must be between 1 and the {len(X)} rows of X, got {number}")
    return X if X.dtype.kind == "f" else X.astype(default_float())  # centres are fractional


def distinct_rows(X: AnyNDArray) -> AnyNDArray:
    """Keep distinct rows, in order of first appearance."""
    _, first = np.unique(X, axis=0, return_index=True)
    return X[np.sort(first)]


def at_most(Z: AnyNDArray, num_inducing: int) -> AnyNDArray:
    """:return: Z; warns if it has fewer rows than asked for."""
    if len(Z) < num_inducing:
        warn(f"only {len(Z)} of {num_inducing} inducing points are distinct; duplicates are unused")
    return np.ascontiguousarray(Z)


class SparseModel(Model, Protocol):
    """A model with q over inducing variables, such as `BSVM`."""

    inducing_variable: Any
    q_mu: Any
    q_sqrt: Any
    whiten: bool

    def whitened_q(self, Lz: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean [L, M] and root [L, M, M] of q(Lz^-1 u)."""


def check_exchangeable(model: SparseModel) -> None:
    """
    :raise TypeError: for a model whose q is not over inducing variables, see `check_model`.
    :raise ValueError: unless the inducing variables are plain points, shared by all f.
    """
    check_model(model)
    kind = type(model.inducing_variable)
    if kind is not gpflow.inducing_variables.InducingPoints:
        raise ValueError(f"only plain InducingPoints can be exchanged, not {kind.__name__}")


def exchange(model: SparseModel, Z: Any) -> None:
    """
    Replace the inducing points of a `BSVM`; their number may change. The new q(u) is the model's
    prediction at Z. Predictions at Z therefore do not change (unless the kernel has a `White`
    part); elsewhere, they change only if Z cannot represent them.

    :param model: a model with plain inducing points shared by all latent functions; changed in
        place.
    :param Z: [M, D].
    :raise TypeError: see `check_exchangeable`.
    :raise ValueError: unless Z is finite, as wide as X and without equal rows; for other variables.
    """
    check_exchangeable(model)
    Z = np.asarray(as_matrix(Z, "Z"), default_float())
    check_width(model, Z)
    for first, again in duplicate_rows(Z):
        raise ValueError(f"rows {first} and {again} of Z are equal: remove duplicates")
    Lz = model.prior_factor()
    mean, root = model.whitened_q(Lz)
    phi = compiled_project.bind(model.prior)(Z, Lz).phi
    before = model.inducing_variable
    model.inducing_variable = gpflow.inducing_variables.InducingPoints(_like(before.Z, Z))
    try:
        Lz = model.prior_factor()
        mean = tf.linalg.matvec(phi, mean)
        unknown = _gram(Lz) - _gram(phi)  # covariance of f at Z, given s
        root = root_of_covariance(unknown + _gram(tf.matmul(phi, root)), jitter_of(model))
    except BaseException:  # q belongs to the points before
        model.inducing_variable = before
        raise
    if model.whiten:
        mean, root = whiten(Lz, mean, root)
    model.q_mu = _like(model.q_mu, tf.transpose(mean))
    model.q_sqrt = _like(model.q_sqrt, root)


def _like(old: gpflow.Parameter, value: Any) -> gpflow.Parameter:
    """:return: a parameter of this value, with the prior, transform and flag of `old`."""
    return gpflow.Parameter(
        value,
        transform=old.transform,
        prior=old.prior,
        prior_on=old.prior_on,
        trainable=old.trainable,
    )


def _gram(rows: tf.Tensor) -> tf.Tensor:
    return tf.matmul(rows, rows, transpose_b=True)


def reselect(
    model: SparseModel,
    data: tuple[Any, Any],
    max_inducing: int | None = None,
    *,
    sample_weight: Any = None,
    tol: float = 1e-3,
    seed: int | None = 0,
    subsample: int = SUBSAMPLE,
) -> AnyNDArray:
    """
    Choose new inducing points for a `BSVM` with `greedy_variance` at its current kernel and sites,
    and `exchange` the old points for these. The sites' precisions w_n weight the variances, so that
    points concentrate where classes meet (heteroscedastic greedy variance).

    Continue with `gpflow_bsvm.fit` or `gpflow_bsvm.inference.VEM`; once or twice is enough (Burt et
    al. 2020, section 7.4). The cost is O(N M^2) for the N rows of a random subsample.

    :param model: a model fitted to `data`; changed in place.
    :param max_inducing: maximum number M of points; if None, the current number.
    :param sample_weight: [N], as in the fit.
    :param tol: see `greedy_variance`.
    :param subsample: maximum number of rows to choose from.
    :return: Z [M, D].
    :raise TypeError: or ValueError, for bad data, and as in `exchange`.
    """
    check_exchangeable(model)
    number = model.q_shape[1] if max_inducing is None else max_inducing
    check_whole(1, max_inducing=number, subsample=subsample)
    source = open_all(model, data, sample_weight)
    blocks, places = source.gather(random_rows(source.num_rows, subsample, seed))
    rows = take(blocks, places)
    localise = partial(compiled_localise.bind(model.likelihood), compiled_solve(model.natural()))
    part = ProjectedData(model, ArraySource(rows.X, rows.Y, rows.weight, chunk_rows(model)))
    precisions = map_over(part, localise).sites.w
    weight = rows.weight.numpy()[:, 0] * np.sum(precisions, axis=1)
    number = min(number, len(weight))
    Z = greedy_variance(rows.X, number, model.prior.kernel, tol=tol, weight=weight)
    exchange(model, Z)
    return Z
