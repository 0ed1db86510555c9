"""Tables in files as rows of a fit."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from ..data.pieces import Origin, Piece
from ..data.readers import Reader
from ..optional import require
from ..tables.formats import Arff, Parquet, SVMLight
from ..tables.labels import as_text
from ..tables.paths import ARFF, CSV, PARQUET, SVMLIGHT, find_files
from ..tables.table import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Number of rows of a column that are read together.
_COLUMN_ROWS = 2**17


class TextOptions(TypedDict, total=False):
    """How a text is written, see `CSVFiles`."""

    names: Sequence[str] | None
    separator: str | None
    encoding: str | None


class ColumnOptions(TypedDict, total=False):
    """What becomes of columns, see `ParquetFiles`."""

    weight: str | None
    features: Sequence[str] | None
    drop: Sequence[str]
    classes: Sequence[Any] | str | None
    words: bool | Sequence[str]
    dates: Sequence[str]
    na_values: Sequence[str] | None
    decimal: str | None
    thousands: str | None


class CSVOptions(TextOptions, ColumnOptions):
    """What `CSVFiles` takes by keyword."""


class Files(Reader):
    """
    Rows of files of equal columns, one file after the other.

    :ivar paths: of the files, in the order in which they are read.
    :ivar features: names of the columns of X.
    :ivar classes: the label of each class 0..C-1, if labels become numbers; else None.
    :ivar ordered: whether the order of the classes is stated, by the user or by their type.
    :ivar left_out: columns left out without being asked: the index that pandas wrote.
    """

    finite = True
    endings: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        target: str | None = None,
        *,
        weight: str | None = None,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        classes: Sequence[Any] | str | None = None,
        words: bool | Sequence[str] = False,
        dates: Sequence[str] = (),
        na_values: Sequence[str] | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        **how: Unpack[TextOptions],
    ) -> None:
        """
        :param path: of a file, of a directory, whose files are read in the order of their names, or
            of several files, read in the order given.
        :param target: name of the column of labels, numbers as the likelihood wants them; None: for
            predictions.
        :param weight: name of the column of weights; None: ones.
        :param features: names of the columns of X, in this order; None: all others except those
            without a name (the index, as pandas writes it) and those of `drop`.
        :param classes: labels of any type, in the order of 0..C-1, which become numbers; "auto": a
            pass finds them, and sorts them unless their type has an order. A label is its text as
            the file has it; whole numbers written as Python does become numbers.
        :param words: whether a pass finds the words of columns of text: of at most 50 each becomes
            a feature "column=word" of zeros and ones, as which `features` may name it; or names of
            columns that are words even if they look like numbers.
        :param dates: names of columns of dates or times, which become days since 1970.
        :param na_values: texts that mean that a value is missing, besides the empty one; None:
            those that are usual among numbers, such as "NA" and "?".
        :param decimal: the decimal sign of numbers; None: the one that a column shows.
        :param thousands: the sign between groups of three digits; None: as `decimal`.
        :raise ImportError: without pyarrow.
        :raise FileNotFoundError: if there is no such file.
        :raise ValueError: for columns that are missing, not numbers or to be read in several ways,
            and for a file without rows.
        """
        require("pyarrow", extra="files")
        self.paths = find_files(path, self.endings)
        table = Table(
            self.paths,
            target,
            weight=weight,
            features=features,
            drop=drop,
            classes=classes,
            words=words,
            dates=dates,
            na_values=na_values,
            decimal=decimal,
            thousands=thousands,
            **how,
        )
        self._take(table)

    def _take(self, table: Table) -> None:
        self.paths, self.table = [file.path for file in table.formats], table
        self.columns, self.left_out = table.columns, table.left_out
        self.features, self.classes = self.columns.features, self.columns.classes
        self.ordered = table.ordered

    @property
    def marks(self) -> dict[str, str]:
        """See `Reader`; independent of the files' place, if copies keep modification times."""
        known = [os.stat(path) for path in self.paths]
        latest = datetime.fromtimestamp(max(file.st_mtime for file in known))
        digest = hashlib.sha256(repr([(f.st_size, f.st_mtime_ns) for f in known]).encode())
        return {
            "files": f"{len(known)} of {sum(file.st_size for file in known)} bytes, last changed "
            f"{latest:%Y-%m-%d %H:%M:%S} ({digest.hexdigest()[:12]})",
            "columns of the files": str(
                [*self.columns.kinds, self.columns.target, self.columns.weight]
            ),
            "classes": repr(self.classes),
        }

    def texts(self, name: str) -> Iterator[str | None]:
        """:return: the values of a column of any type, as the file has them."""
        for file in self.table.formats:
            for batch in self.table.batches(file, [name], _COLUMN_ROWS):
                yield from as_text(batch.column(0)).to_pylist()

    def pieces(self, size: int) -> Iterator[Piece]:
        """See `Reader`."""
        for file in self.table.formats:
            row = 0
            self.table.check(file)
            for batch in self.table.batches(file, self.columns.read, size):
                yield Piece(*self.columns.piece(batch, Origin(row, file.path)))
                row += batch.num_rows
            if row == 0:
                raise ValueError(f"file {file.path} has no rows; leave it out")


class CSVFiles(Files):
    """
    Rows of CSV files whose first line has the columns' names, also compressed, whatever separates
    their fields. The number of rows is not known beforehand; a pass counts them if need be. A file
    without such a line needs `names`::

        gpflow_bsvm.files.CSVFiles("rows.csv", target="y", names=["y", "x1", "x2"])
    """

    endings = CSV

    def __init__(
        self,
        path: Any,
        target: str | None = None,
        *,
        names: Sequence[str] | None = None,
        separator: str | None = None,
        encoding: str | None = None,
        **options: Unpack[ColumnOptions],
    ) -> None:
        """
        Other arguments and errors as of `ParquetFiles`.

        :param names: of all columns in their order, if the first line is already a row.
        :param separator: None: that which cuts the first lines into equally many fields.
        :param encoding: None: that of a byte order mark, else UTF-8.
        :raise ValueError: for a first line of numbers other than 0, 1, 2, ..., if names are not
            given.
        """
        if isinstance(names, str):
            raise ValueError(f"names must be a list of names, got the string {names!r}")
        how: TextOptions = {"names": names, "separator": separator, "encoding": encoding}
        super().__init__(path, target, **options, **how)


class OtherFiles(Files):
    """Rows of files of Weka or OpenML (.arff), or of LIBSVM (x0, x1, ... with label y)."""

    endings = (*ARFF, *SVMLIGHT)


class ParquetFiles(Files):
    """
    Rows of Parquet files, some chunks of a row group at a time; their number is in the files'
    metadata::

        rows = gpflow_bsvm.files.ParquetFiles("rows/", target="clicked", classes=["no", "yes"])
        gpflow_bsvm.fit(model, rows)
    """

    endings = PARQUET

    def _take(self, table: Table) -> None:
        super()._take(table)
        for file in table.formats:
            table.check(file)
            if file.num_rows == 0:
                raise ValueError(f"file {file.path} has no rows; leave it out")
        self.known_rows = sum(file.num_rows or 0 for file in table.formats)


def rows_of(table: Table) -> Files:
    """:return: the rows of a table, of whatever format."""
    of = {Parquet: ParquetFiles, Arff: OtherFiles, SVMLight: OtherFiles}
    kind: type[Files] = of.get(type(table.formats[0]), CSVFiles)
    rows = kind.__new__(kind)
    rows._take(table)
    return rows
