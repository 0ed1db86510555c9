"""Where the inducing points go, at the start and later."""

from .initial import (
    afkmc2,
    gaussian_mixture,
    greedy_variance,
    kmeans,
    kmeans_plusplus_seeds,
    random_subset,
)
from .update import exchange, reselect

__all__ = [
    "afkmc2",
    "exchange",
    "gaussian_mixture",
    "greedy_variance",
    "kmeans",
    "kmeans_plusplus_seeds",
    "random_subset",
    "reselect",
]
