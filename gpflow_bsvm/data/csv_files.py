"""CSV files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..optional import require
from .files import Files


class CSVFiles(Files):
    """
    Rows of CSV files whose first line has the columns' names, also compressed. Their number is not
    known beforehand: what needs it counts by a pass.
    """

    endings = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")

    def _open(self, path: str, **convert: Any) -> Any:
        arrow, csv = (require(m, extra="files") for m in ("pyarrow", "pyarrow.csv"))
        try:
            return csv.open_csv(path, convert_options=csv.ConvertOptions(**convert))
        except arrow.ArrowInvalid as error:
            raise ValueError(f"file {path} cannot be read: {error}") from error

    def _schema(self, path: str) -> Any:
        with self._open(path) as file:
            return file.schema

    def _types(self) -> dict[str, Any]:
        """:return: of all columns: a later block might look like another type than the first."""
        double = require("pyarrow", extra="files").float64()
        types = dict.fromkeys(self.columns, double)
        if self._numbers is not None:
            types[str(self._target)] = self._numbers.arrow_type
        return types

    def _tables(self, path: str, size: int) -> Iterator[Any]:
        with self._open(path, include_columns=self.columns, column_types=self._types()) as file:
            yield from file

    def _why(self, path: str, error: Exception) -> str:
        """:return: pyarrow's message, or what names row and column."""
        arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
        types, row = self._types(), 0
        texts = dict.fromkeys(self.columns, arrow.string())
        try:
            with self._open(path, include_columns=self.columns, column_types=texts) as file:
                for table in file:
                    for name in self.columns:
                        wrong = _first_wrong(table.column(name), types[name], compute)
                        if wrong is not None:
                            value = table.column(name)[wrong].as_py()
                            return f"{value!r} is no number (row {row + wrong}, column {name!r})"
                    row += table.num_rows
        except (arrow.ArrowInvalid, ValueError):
            pass
        return str(error)


def _first_wrong(texts: Any, kind: Any, compute: Any) -> int | None:
    """:return: index of the first text that is none of this type."""
    try:
        compute.cast(texts, kind)
    except ValueError:
        for index, text in enumerate(texts):
            try:
                text.cast(kind)
            except ValueError:
                return index
    return None
