"""Rows in files, one or many, read piece by piece."""

from .files import CSVFiles, OtherFiles, ParquetFiles, rows_of

__all__ = ["CSVFiles", "OtherFiles", "ParquetFiles", "rows_of"]
