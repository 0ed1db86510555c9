"""Parquet and CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..optional import require
from ..tables import CSV, PARQUET, columns, csv_options, is_number
from .files import Files


class ParquetFiles(Files):
    """
    Rows of Parquet files, some chunks of a row group at a time; their number is in the files'
    metadata::

        rows = gpflow_bsvm.files.ParquetFiles("rows/", target="clicked", classes=["no", "yes"])
        gpflow_bsvm.fit(model, rows)
    """

    endings = PARQUET

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """See `Files`."""
        super().__init__(*arguments, **options)
        self.known_rows = sum(map(self._count, self.paths))

    def _count(self, path: str) -> int:
        self._check(path, self._schema(path))
        number = int(self._file(path).count_rows())
        if number == 0:
            raise ValueError(f"file {path} has no rows; leave it out")
        return number

    def _format(self, path: str) -> Any:
        return require("pyarrow.dataset", extra="files").ParquetFileFormat()

    def _batches(self, path: str, kinds: dict[str, Any], size: int) -> Iterator[Any]:
        parquet = require("pyarrow.parquet", extra="files")
        # Not by the fragment, which holds a whole row group in memory.
        with parquet.ParquetFile(path, buffer_size=2**20, pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=size, columns=list(kinds))


class CSVFiles(Files):
    """
    Rows of CSV files whose first line has the columns' names, also compressed, separated by commas,
    semicolons, tabs or bars, whichever is most frequent there, with a decimal comma where the first
    lines have one. Empty fields and texts such as "N/A" are missing values. The number of rows is
    not known beforehand; a pass counts them if need be. A file without such a line needs `names`::

        gpflow_bsvm.files.CSVFiles("rows.csv", target="y", names=["y", "x1", "x2"])
    """

    endings = CSV

    def __init__(self, *arguments: Any, names: Sequence[str] | None = None, **options: Any) -> None:
        """
        Other arguments and errors as `ParquetFiles`.

        :param names: of all columns in their order, if the first line is already a row.
        :raise ValueError: for a first line of numbers other than 0, 1, 2, ..., if names are not
            given.
        """
        if isinstance(names, str):
            raise ValueError(f"names must be a list of names, got the string {names!r}")
        self._names = None if names is None else list(names)
        super().__init__(*arguments, **options)

    def _format(self, path: str) -> Any:
        options = csv_options(path, self._names)
        return require("pyarrow.dataset", extra="files").CsvFileFormat(**options)

    def _batches(self, path: str, kinds: dict[str, Any], size: int) -> Iterator[Any]:
        scanner = self._file(path).scanner(
            schema=require("pyarrow", extra="files").schema(kinds.items()),
            columns=list(kinds),
            batch_size=size,
            batch_readahead=2,
            fragment_readahead=1,
        )
        yield from scanner.to_batches()

    def _schema(self, path: str) -> Any:
        names = columns(path) if self._names is None else []
        counted = [str(number) for number in range(len(names))]  # as pandas may call them
        if names and all(map(is_number, names)) and names != counted:
            raise ValueError(
                f"the first line of {path} has numbers instead of the columns' names "
                f"({', '.join(names[:4])}, ...): give names=[...], those of all "
                f"{len(names)} columns, if it is a row"
            )
        return super()._schema(path)
