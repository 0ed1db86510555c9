"""The paper's ways to place inducing points: AFK-MC2 and a Gaussian mixture."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from sklearn.metrics import pairwise_distances
from sklearn.mixture import GaussianMixture

from ...checks import check_choice, check_whole
from ...inducing_points.points import (
    SUBSAMPLE,
    at_most,
    checked,
    distinct_rows,
    some_rows,
)


def gaussian_mixture(
    X: Any,
    num_inducing: int,
    *,
    seed: int | None = 0,
    subsample: int = SUBSAMPLE,
    covariance: str = "full",
    max_iter: int = 100,
) -> AnyNDArray:
    """
    Means of a mixture of M Gaussians (the third choice of Wenzel et al. 2017, section 5.5), by
    scikit-learn's expectation maximization, initialized by k-means, which may warn
    (ConvergenceWarning). With full covariances it is no better than `kmeans`, and far slower.

    Arguments and errors as in `kmeans`.

    :param covariance: covariance of the Gaussians: "full", "tied", "diag" or "spherical".
    :param max_iter: largest number of iterations.
    :raise ValueError: for another covariance, fewer than 1 iteration, or a mixture that cannot be
        fitted.
    """
    check_choice(("full", "tied", "diag", "spherical"), covariance=covariance)
    check_whole(1, max_iter=max_iter)
    X, distinct, state = some_rows(X, num_inducing, subsample, seed)
    if len(distinct) <= num_inducing:
        return at_most(distinct, num_inducing)
    mixture = GaussianMixture(num_inducing, covariance_type=covariance, max_iter=max_iter)
    try:
        means = mixture.set_params(random_state=state).fit(X).means_
    except ValueError as error:
        raise ValueError(
            f"a mixture of {num_inducing} Gaussians of {covariance} covariance cannot be fitted to "
            f"{len(X)} rows of {X.shape[1]} columns ({error}); use another covariance, or kmeans"
        ) from error
    return at_most(distinct_rows(means.astype(X.dtype)), num_inducing)


def afkmc2(
    X: Any, num_inducing: int, *, seed: int | None = 0, chain_length: int = 200
) -> AnyNDArray:
    """
    Distant rows of X, by the Markov chains of AFK-MC2 (Bachem et al. 2016; the choice of Wenzel et
    al. 2017, section 5.5): like k-means++ seeding, but with a single pass over the data.

    Arguments and errors as in `kmeans`.

    :param chain_length: steps of the chain for each point; longer chains are closer to k-means++.
    """
    X = distinct_rows(checked(X, num_inducing))
    if len(X) <= num_inducing:
        return at_most(X, num_inducing)
    generator = np.random.default_rng(seed)
    chosen = [int(generator.integers(len(X)))]
    squares = _squared_distances(X, X[chosen])
    proposal = 0.5 * squares / squares.sum() + 0.5 / len(X)
    shape = (num_inducing - 1, chain_length)
    candidates = np.searchsorted(np.cumsum(proposal)[:-1], generator.random(shape))
    for drawn, uniform in zip(candidates, generator.random(shape)):
        ratio = _squared_distances(X[drawn], X[chosen]) / proposal[drawn]
        chosen.append(int(drawn[_end_of_chain(ratio, uniform)]))
    return at_most(distinct_rows(X[chosen]), num_inducing)


def _end_of_chain(ratio: AnyNDArray, uniform: AnyNDArray) -> int:
    """:return: the last state of a Metropolis chain over 0, 1, 2, ... for these densities."""
    state = 0
    for step in range(1, len(ratio)):
        if ratio[step] > uniform[step] * ratio[state]:
            state = step
    return state


def _squared_distances(X: AnyNDArray, centres: AnyNDArray) -> AnyNDArray:
    """:return: [N], squared distances to the nearest centre."""
    nearest = pairwise_distances(X, centres, metric="sqeuclidean").min(axis=1)
    return np.asarray(nearest)
