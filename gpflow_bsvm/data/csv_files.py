"""CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..optional import require
from .files import Files, listed


class CSVFiles(Files):
    """
    Rows of CSV files whose first line has the columns' names, also compressed. Their number is not
    known beforehand: what needs it counts by a pass. A file without such a line needs `names`::

        gpflow_bsvm.data.CSVFiles("rows.csv", target="y", names=["y", "x1", "x2"])
    """

    endings = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")

    def __init__(self, *arguments: Any, names: Sequence[str] | None = None, **options: Any) -> None:
        """
        Other arguments and errors as `ParquetFiles`.

        :param names: of all columns in their order, where the first line has a row already.
        :raise ValueError: for a first line of numbers other than 0, 1, 2, ..., if names are not
            given.
        """
        if isinstance(names, str):
            raise ValueError(f"names must be a list of names, got the string {names!r}")
        self._names = None if names is None else list(names)
        super().__init__(*arguments, **options)

    def _open(self, path: str, **convert: Any) -> Any:
        csv = require("pyarrow.csv", extra="files")
        return csv.open_csv(
            path,
            read_options=csv.ReadOptions(column_names=self._names),
            convert_options=csv.ConvertOptions(**convert),
        )

    def _schema(self, path: str) -> Any:
        try:
            with self._open(path) as file:
                schema = file.schema
        except require("pyarrow", extra="files").ArrowInvalid as error:
            raise ValueError(f"file {path} cannot be read: {error}") from error
        counted = [str(number) for number in range(len(schema.names))]  # as pandas may call them
        if self._names is None and all(map(_is_number, schema.names)) and schema.names != counted:
            raise ValueError(
                f"the first line of {path} has numbers in the place of the columns' names "
                f"({', '.join(schema.names[:4])}, ...): give names=[...], those of all "
                f"{len(schema.names)} columns, if it is a row"
            )
        return schema

    def _column(self, path: str, name: str) -> Iterator[Any]:
        if name not in (names := self._schema(path).names):
            raise ValueError(f"file {path} lacks {name!r}; it has {listed(names)}")
        with self._open(path, include_columns=[name]) as file:
            yield from file

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
        except arrow.ArrowInvalid:
            pass  # no table at all
        return str(error)


def _is_number(name: str) -> bool:
    """:return: whether this is rather a value than a column's name."""
    try:
        float(name)
    except ValueError:
        return False
    return True


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
