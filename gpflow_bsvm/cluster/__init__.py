"""Rows held by Dask, and passes on its workers."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .dask_data import DaskArrays, DaskFrame, dask_reader

__all__ = ["DaskArrays", "DaskFrame", "dask_reader"]
