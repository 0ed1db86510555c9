"""Rows in one or several files, read piece by piece."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from .data.batch import Origin, Piece, digest
from .data.readers import Reader
from .optional import require
from .tables.cells import as_text
from .tables.paths import ARFF, CSV, ENDINGS, PARQUET, SVMLIGHT, find_files, shortened
from .tables.reading import Options, Reading
from .tables.table import Table

if TYPE_CHECKING:  # no dependency of this package
    from typing_extensions import Unpack

__all__ = ["CSVFiles", "Files", "OtherFiles", "ParquetFiles", "Reading"]

#: Number of rows to read at a time into memory.
ROWS = 2**17


class Files(Reader):
    """
    Rows of files with the same columns, one file after another.

    :ivar paths: file paths, in reading order.
    :ivar features: names of the columns of X.
    :ivar classes: the labels of classes 0..C-1; None if labels are not converted.
    :ivar classes_in_order: whether the user or the labels' type defines the order of the classes.
    :ivar left_out: columns left out automatically: an index written by pandas or R.
    """

    finite = True
    endings: ClassVar[tuple[str, ...]] = ENDINGS

    def __init__(self, path: Any, target: str | None = None, **options: Unpack[Options]) -> None:
        """
        :param path: a file; a directory, whose files are read in the order of their names; several
            files, which are read in the given order; or the `Table` of the files.
        :param target: name of the label column; None for predictions.
        :param options: further options for columns and files, see `Reading`.
        :raise ImportError: if pyarrow is missing.
        :raise FileNotFoundError: if there is no such file.
        :raise ValueError: for missing, non-numeric or ambiguous columns; for a header of numbers
            other than 0, 1, 2, ... (unless `names` is given); when rows are read, for a file
            without rows.
        """
        require("pyarrow", extra="files")
        if not isinstance(path, Table):
            path = Table(find_files(path, self.endings), Reading(target, **options))
        self.table = path
        self.columns = path.columns
        self.left_out = path.left_out
        self.paths = [file.path for file in path.files]
        self.classes_in_order = path.classes_in_order
        self.features = self.columns.features
        self.classes = self.columns.classes
        counts = [file.num_rows for file in path.files if file.num_rows is not None]
        self.known_rows = sum(counts) if len(counts) == len(path.files) else None

    @property
    def marks(self) -> dict[str, str]:
        """See `Reader`. Marks do not change if files are moved, or copied with their timestamps."""
        known = [os.stat(path) for path in self.paths]
        latest = datetime.fromtimestamp(max(file.st_mtime for file in known))
        short = digest(repr([(file.st_size, file.st_mtime_ns) for file in known]))
        of = self.columns
        read = digest(repr([of.kinds, of.features, of.target, of.weight]))
        return {
            "files": f"{len(known)} of {sum(file.st_size for file in known)} bytes, last changed "
            f"{latest:%Y-%m-%d %H:%M:%S} ({short})",
            "columns of the files": f"{shortened(of.read)} ({read})",
            "classes": repr(self.classes),
        }

    def texts(self, name: str) -> Iterator[str | None]:
        """:return: the values of a column as strings, whatever its type."""
        for file in self.table.files:
            for batch in file.batches([name], ROWS):
                yield from as_text(batch.column(0)).to_pylist()

    def pieces(self, size: int) -> Iterator[Piece]:
        for file in self.table.files:
            row = 0
            for batch in file.batches(self.columns.read, size):
                yield Piece._make(self.columns.piece(batch, Origin(row, file.path)))
                row += batch.num_rows
            if row == 0:
                remedy = "leave it out" if len(self.paths) > 1 else "at least one is needed"
                raise ValueError(f"file {file.path} has no rows; {remedy}")


class CSVFiles(Files):
    """
    Rows of CSV files with a header line, any separator, and optional compression. If necessary, a
    pass counts the rows. A file without a header needs `names`::

        gpflow_bsvm.files.CSVFiles("rows.csv", target="y", names=["y", "x1", "x2"])
    """

    endings = CSV


class OtherFiles(Files):
    """Rows of ARFF files (Weka, OpenML) or LIBSVM files (columns y, x0, x1, ...)."""

    endings = (*ARFF, *SVMLIGHT)


class ParquetFiles(Files):
    """
    Rows of Parquet files, read in parts of row groups. The metadata give the number of rows::

        rows = gpflow_bsvm.files.ParquetFiles("rows/", target="clicked", classes=["no", "yes"])
        gpflow_bsvm.fit(model, rows)
    """

    endings = PARQUET
