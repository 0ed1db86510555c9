"""Rows in one or several files, read piece by piece."""

from ..tables.reading import Reading
from .files import CSVFiles, Files, OtherFiles, ParquetFiles

__all__ = ["CSVFiles", "Files", "OtherFiles", "ParquetFiles", "Reading"]
