"""Rows in Parquet and CSV files, one or many, read piece by piece."""

from .formats import CSVFiles, ParquetFiles

__all__ = ["CSVFiles", "ParquetFiles"]
