"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..optional import require
from ..tables import PARQUET
from .files import Files, listed


class ParquetFiles(Files):
    """
    Rows of Parquet files, within a row group some chunks at a time; their number is known from the
    files' metadata::

        rows = gpflow_bsvm.files.ParquetFiles("rows/", target="clicked", classes=["no", "yes"])
        gpflow_bsvm.fit(model, rows)
    """

    endings = PARQUET

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """See `Files`."""
        super().__init__(*arguments, **options)
        self.num_rows = sum(map(self._count, self.paths))

    def _count(self, path: str) -> int:
        with self._open(path) as file:
            self._check_names(path, file.schema_arrow)
            self._check_types(path, file.schema_arrow)
            number = int(file.metadata.num_rows)
        if number == 0:
            raise ValueError(f"file {path} has no rows; leave it out")
        return number

    def _open(self, path: str) -> Any:
        arrow, parquet = (require(m, extra="files") for m in ("pyarrow", "pyarrow.parquet"))
        try:  # a buffer, so that a row group need not be in memory as a whole
            return parquet.ParquetFile(path, buffer_size=2**20, pre_buffer=False)
        except arrow.ArrowInvalid as error:
            raise ValueError(f"file {path} is no Parquet file: {error}") from error

    def _schema(self, path: str) -> Any:
        with self._open(path) as file:
            return file.schema_arrow

    def _tables(self, path: str, size: int) -> Iterator[Any]:
        with self._open(path) as file:
            yield from file.iter_batches(batch_size=size, columns=self.columns)

    def _column(self, path: str, name: str, kind: Any = None) -> Iterator[Any]:
        with self._open(path) as file:
            if name not in (names := file.schema_arrow.names):
                raise ValueError(f"file {path} lacks {name!r}; it has {listed(names)}")
            yield from file.iter_batches(columns=[name])
