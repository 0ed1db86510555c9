"""Where the inducing points go. No function returns the same point twice."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from sklearn.cluster import KMeans, kmeans_plusplus

from .checks import as_matrix

#: Rows that k-means looks at: beyond some 20 000 the centres hardly move any more.
SUBSAMPLE = 20_000


def random_subset(X: Any, num_inducing: int, *, seed: int | None = 0) -> AnyNDArray:
    """
    A random subset of the distinct rows of X.

    :param X: [N, D].
    :param num_inducing: M.
    :return: Z [M, D].
    :raise ValueError: if X is not finite and two-dimensional, or M is not in 1..N.
    """
    X = _checked(X, num_inducing)
    rows = _distinct(X)
    generator = np.random.default_rng(seed)
    return _at_most(rows[generator.permutation(len(rows))[:num_inducing]], num_inducing)


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

    :param X: [N, D], scaled as the kernel will see it.
    :param num_inducing: M.
    :param subsample: look at this many rows at most.
    :param max_iter: Lloyd iterations; 0 gives the k-means++ seeding itself: rows of X.
    :return: Z [M, D].
    :raise ValueError: if X is not finite and two-dimensional, or M is not in 1..N.
    """
    X = _checked(X, num_inducing)
    generator = np.random.default_rng(seed)
    if len(X) > max(subsample, num_inducing):
        X = X[generator.choice(len(X), max(subsample, num_inducing), replace=False)]
    distinct = _distinct(X)
    if len(distinct) <= num_inducing:
        return _at_most(distinct, num_inducing)
    state = int(generator.integers(2**31))
    if max_iter == 0:
        centres, _ = kmeans_plusplus(X, num_inducing, random_state=state)
    else:
        centres = (
            KMeans(num_inducing, n_init=1, max_iter=max_iter, random_state=state)
            .fit(X)
            .cluster_centers_
        )
    return _at_most(_distinct(centres.astype(X.dtype)), num_inducing)


def kmeans_plusplus_seeds(X: Any, num_inducing: int, *, seed: int | None = 0) -> AnyNDArray:
    """`kmeans` with its seeding alone: rows of X, far apart, without any Lloyd iteration."""
    return kmeans(X, num_inducing, seed=seed, max_iter=0)


def _checked(X: Any, num_inducing: int) -> AnyNDArray:
    X = as_matrix(X, "X")
    if not 1 <= num_inducing <= len(X):
        raise ValueError(
            f"num_inducing must be between 1 and the {len(X)} rows of X, got {num_inducing}"
        )
    return X if X.dtype.kind == "f" else X.astype(default_float())  # centres are no integers


def _distinct(X: AnyNDArray) -> AnyNDArray:
    """Distinct rows, in the order in which they come."""
    _, first = np.unique(X, axis=0, return_index=True)
    return X[np.sort(first)]


def _at_most(Z: AnyNDArray, num_inducing: int) -> AnyNDArray:
    if len(Z) < num_inducing:
        warnings.warn(
            f"only {len(Z)} of {num_inducing} inducing points are distinct; only those are used",
            stacklevel=3,
        )
    return np.ascontiguousarray(Z)
