"""Functions that choose initial inducing points, all distinct."""

from __future__ import annotations

import warnings
from typing import Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from sklearn.cluster import KMeans

from ..data.checks import as_matrix, check_weights
from ..data.sampling import random_rows

#: Number of rows for k-means; beyond some 20 000 the centres hardly change.
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
    Centres of k-means, started by k-means++ (Wenzel et al. 2017, section 5.5), on a random
    subsample of the rows, by scikit-learn.

    :param X: [N, D], scaled as the kernel's inputs.
    :param num_inducing: M.
    :param subsample: the largest number of rows to use.
    :param max_iter: Lloyd iterations.
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
    Rows of X by greedy conditional variance (Burt et al. 2020): each is the row with the largest
    variance given the earlier rows. M is the number at which these variances are small.

    The cost is O(N M^2) for the N rows of a random subsample of at most 20 000.

    :param X: [N, D].
    :param max_inducing: the largest M.
    :param kernel: a kernel with a single output.
    :param tol: stop when the sum of the conditional variances is below `tol` times the sum of the
        prior variances; 0: never.
    :param weight: [N], non-negative factors of the rows' variances; the sites' precisions w, for
        example, concentrate points where classes meet.
    :return: Z [M, D].
    :raise ValueError: as `kmeans`, or if weights are not N non-negative numbers.
    """
    X = checked(X, max_inducing)
    weight = check_weights(weight, len(X))[:, 0]
    rows = random_rows(len(X), SUBSAMPLE, 0)
    X = X[rows]
    weight = weight[rows]
    X, first = np.unique(X, axis=0, return_index=True)  # independent of the rows' order
    weight = weight[first]
    residual = np.array(kernel(X, full_cov=False), np.float64)
    enough = tol * np.sum(weight * residual)
    chosen: list[int] = []
    L = np.zeros((max_inducing, len(X)))  # pivoted Cholesky factor of the kernel matrix
    while len(chosen) < min(max_inducing, len(X)):
        left = weight * residual
        pivot = int(np.argmax(left))
        if left[pivot] <= 0 or left.sum() <= enough:
            break
        column = np.asarray(kernel(X[pivot : pivot + 1], X), np.float64)[0]
        step = len(chosen)
        L[step] = (column - L[:step, pivot] @ L[:step]) / np.sqrt(residual[pivot])
        residual = np.maximum(residual - np.square(L[step]), 0)
        residual[pivot] = 0
        chosen.append(pivot)
    return np.ascontiguousarray(X[chosen])


def checked(X: Any, num_inducing: int) -> AnyNDArray:
    """:return: X as a floating-point matrix of enough rows."""
    X = as_matrix(X, "X")
    if not 1 <= num_inducing <= len(X):
        raise ValueError(
            f"num_inducing must be between 1 and the {len(X)} rows of X, got {num_inducing}"
        )
    return X if X.dtype.kind == "f" else X.astype(default_float())  # centres are fractional


def distinct_rows(X: AnyNDArray) -> AnyNDArray:
    """Keep distinct rows, in order of first appearance."""
    _, first = np.unique(X, axis=0, return_index=True)
    return X[np.sort(first)]


def at_most(Z: AnyNDArray, num_inducing: int) -> AnyNDArray:
    """:return: Z; warns if it has fewer rows than asked for."""
    if len(Z) < num_inducing:
        warnings.warn(
            f"only {len(Z)} of {num_inducing} inducing points are distinct; only those are used",
            stacklevel=3,
        )
    return np.ascontiguousarray(Z)
