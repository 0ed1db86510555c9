"""Inducing points: initial choices, and changes during training."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .initial import greedy_variance, kmeans
from .update import exchange, reselect

__all__ = ["exchange", "greedy_variance", "kmeans", "reselect"]
