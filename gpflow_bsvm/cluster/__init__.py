"""Rows that Dask holds, and passes over them on its workers."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from ..data.opening import OPENERS
from .dask_data import DaskFrame, dask_reader, is_of_dask

__all__ = ["DaskFrame"]

OPENERS.append((is_of_dask, dask_reader))
