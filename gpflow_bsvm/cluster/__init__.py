"""Rows that Dask holds, and passes over them on its workers."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from ..data.opening import OPENERS
from .dask_data import DaskFrame, dask_reader

__all__ = ["DaskFrame"]

OPENERS.append(dask_reader)
