"""Data sources, their checks, and the two loops over data."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .opening import open_source
from .readers import Reader
from .sources import Source
from .streams import Blocks, MappedArrays, Part

__all__ = ["Blocks", "MappedArrays", "Part", "Reader", "Source", "open_source"]
