"""Rows in Parquet and CSV files, one or many, read piece by piece."""

from .csv_files import CSVFiles
from .parquet_files import ParquetFiles

__all__ = ["CSVFiles", "ParquetFiles"]
