"""Inducing points: initial choices, and changes during training."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .points import exchange, greedy_variance, kmeans, reselect

__all__ = ["exchange", "greedy_variance", "kmeans", "reselect"]
