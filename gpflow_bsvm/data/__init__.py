"""Data sources, their checks, and the two loops over them."""

from .csv_files import CSVFiles
from .dask_data import DaskArrays, DaskFrame
from .mapped import MappedArrays
from .opening import open_source
from .parquet_files import ParquetFiles
from .readers import Blocks, Part, Reader
from .sources import Source

__all__ = [
    "Blocks",
    "CSVFiles",
    "DaskArrays",
    "DaskFrame",
    "MappedArrays",
    "ParquetFiles",
    "Part",
    "Reader",
    "Source",
    "open_source",
]
