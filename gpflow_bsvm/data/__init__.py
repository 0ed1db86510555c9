"""Data sources, their checks, and the two loops over data."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .opening import open_source
from .readers import Blocks, Part, Reader

__all__ = ["Blocks", "Part", "Reader", "open_source"]
