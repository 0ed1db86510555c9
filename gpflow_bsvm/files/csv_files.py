"""CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..optional import require
from ..tables import CSV, MISSING, is_number, style
from .files import Files, listed


class CSVFiles(Files):
    """
    Rows of CSV files whose first line has the columns' names, also compressed, separated by commas,
    semicolons, tabs or bars, whichever is most frequent there, with a decimal comma where the first
    lines have one. Empty fields and texts such as "N/A" are missing values. The number of rows is
    not known beforehand: what needs it counts by a pass. A file without such a line needs `names`::

        gpflow_bsvm.files.CSVFiles("rows.csv", target="y", names=["y", "x1", "x2"])
    """

    endings = CSV

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
        separator, decimal = style(path)
        missing = [*csv.ConvertOptions().null_values, *MISSING]
        convert |= {"decimal_point": decimal, "null_values": missing, "strings_can_be_null": True}
        return csv.open_csv(
            path,
            read_options=csv.ReadOptions(column_names=self._names),
            parse_options=csv.ParseOptions(delimiter=separator),
            convert_options=csv.ConvertOptions(**convert),
        )

    def _schema(self, path: str) -> Any:
        try:
            with self._open(path) as file:
                schema = file.schema
        except require("pyarrow", extra="files").ArrowInvalid as error:
            raise ValueError(f"file {path} cannot be read: {error}") from error
        counted = [str(number) for number in range(len(schema.names))]  # as pandas may call them
        numbers = all(map(is_number, schema.names)) and schema.names != counted
        if self._names is None and numbers:
            raise ValueError(
                f"the first line of {path} has numbers instead of the columns' names "
                f"({', '.join(schema.names[:4])}, ...): give names=[...], those of all "
                f"{len(schema.names)} columns, if it is a row"
            )
        return schema

    def _column(self, path: str, name: str, kind: Any = None) -> Iterator[Any]:
        if name not in (schema := self._schema(path)).names:
            raise ValueError(f"file {path} lacks {name!r}; it has {listed(schema.names)}")
        types = {} if kind is None else {name: kind}
        try:
            with self._open(path, include_columns=[name], column_types=types) as file:
                yield from file
        except require("pyarrow", extra="files").ArrowInvalid as error:
            why = self._first_bad(path, {name: schema.field(name).type}) or str(error)
            raise ValueError(f"file {path} cannot be read: {why}") from error

    def _types(self, path: str) -> dict[str, Any]:
        """:return: of all columns: a later block might look like another type than the first."""
        arrow, schema = require("pyarrow", extra="files"), self._schema(path)
        truth = {name for name in schema.names if schema.field(name).type == arrow.bool_()}
        kinds = (arrow.float64(), arrow.bool_())
        types = {name: kinds[name in truth] for name in self.columns}
        types |= dict.fromkeys(self._texts, arrow.string())
        if self._numbers is not None:
            types[str(self._target)] = self._numbers.arrow_type
        return types

    def _tables(self, path: str, size: int) -> Iterator[Any]:
        with self._open(path, include_columns=self.columns, column_types=self._types(path)) as file:
            yield from file

    def _why(self, path: str, error: Exception) -> str:
        """:return: pyarrow's message, or what names row and column."""
        return self._first_bad(path, self._types(path)) or str(error)

    def _first_bad(self, path: str, types: dict[str, Any]) -> str | None:
        """:return: which text is none of its column's type, if there is a table at all."""
        arrow, compute = (require(m, extra="files") for m in ("pyarrow", "pyarrow.compute"))
        row, texts = 0, dict.fromkeys(types, arrow.string())
        try:
            with self._open(path, include_columns=list(types), column_types=texts) as file:
                for table in file:
                    for name, kind in types.items():
                        wrong = _first_wrong(table.column(name), kind, compute)
                        if wrong is not None:
                            value = table.column(name)[wrong].as_py()
                            return f"{value!r} is no number (row {row + wrong}, column {name!r})"
                    row += table.num_rows
        except arrow.ArrowInvalid:
            pass
        return None


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
