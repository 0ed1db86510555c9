"""Inducing points: how to choose them, at the start and later."""

from .initial import greedy_variance, kmeans
from .reselect import reselect
from .update import exchange

__all__ = ["exchange", "greedy_variance", "kmeans", "reselect"]
