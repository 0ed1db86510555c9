"""Tables in files as rows of a fit."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from ..data.pieces import Origin, Piece
from ..data.readers import Reader
from ..optional import require
from ..tables.cells import as_text
from ..tables.paths import ARFF, CSV, ENDINGS, PARQUET, SVMLIGHT, find_files
from ..tables.reading import Options, Reading
from ..tables.table import Table

if TYPE_CHECKING:  # no dependency of this package
    from typing_extensions import Unpack

#: Number of rows of a column to read together.
_COLUMN_ROWS = 2**17


class Files(Reader):
    """
    Rows of files with equal columns, one file after the other.

    :ivar paths: of the files, in reading order.
    :ivar features: names of the columns of X.
    :ivar classes: the label of each class 0..C-1, if labels become numbers; else None.
    :ivar ordered: whether the order of the classes is stated, by the user or by their type.
    :ivar left_out: columns left out automatically: the index written by pandas.
    """

    finite = True
    endings: ClassVar[tuple[str, ...]] = ENDINGS

    def __init__(self, path: Any, target: str | None = None, **options: Unpack[Options]) -> None:
        """
        :param path: of a file, of a directory, whose files are read in the order of their names, or
            of several files, read in the order given; or their `Table`.
        :param target: name of the label column; None: for predictions.
        :param options: further options for columns and files, see `Reading`.
        :raise ImportError: without pyarrow.
        :raise FileNotFoundError: if there is no such file.
        :raise ValueError: for missing, non-numeric or ambiguous columns; for a file without rows;
            without `names`, for a first line of numbers (except 0, 1, 2, ...).
        """
        require("pyarrow", extra="files")
        if not isinstance(path, Table):
            path = Table(find_files(path, self.endings), Reading(target, **options))
        self.table, self.columns, self.left_out = path, path.columns, path.left_out
        self.paths, self.ordered = [file.path for file in path.files], path.ordered
        self.features, self.classes = self.columns.features, self.columns.classes
        counts = [file.num_rows for file in path.files if file.num_rows is not None]
        self.known_rows = sum(counts) if len(counts) == len(path.files) else None

    @property
    def marks(self) -> dict[str, str]:
        """See `Reader`; equal for moved or copied files with the same modification times."""
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
        """:return: the values of a column of any type, as in the file."""
        for file in self.table.files:
            for batch in file.batches([name], _COLUMN_ROWS):
                yield from as_text(batch.column(0)).to_pylist()

    def pieces(self, size: int) -> Iterator[Piece]:
        """See `Reader`."""
        for file in self.table.files:
            row = 0
            for batch in file.batches(self.columns.read, size):
                yield Piece(*self.columns.piece(batch, Origin(row, file.path)))
                row += batch.num_rows
            if row == 0:
                raise ValueError(f"file {file.path} has no rows; leave it out")


class CSVFiles(Files):
    """
    Rows of CSV files whose first line has the column names, also compressed, with any separator.
    Their number is not known in advance; a pass counts them if necessary. A file without such a
    line needs `names`::

        gpflow_bsvm.files.CSVFiles("rows.csv", target="y", names=["y", "x1", "x2"])
    """

    endings = CSV


class OtherFiles(Files):
    """Rows of ARFF files (Weka, OpenML), or of LIBSVM files (x0, x1, ... with label y)."""

    endings = (*ARFF, *SVMLIGHT)


class ParquetFiles(Files):
    """
    Rows of Parquet files, some chunks of a row group at a time; the files' metadata contain their
    number::

        rows = gpflow_bsvm.files.ParquetFiles("rows/", target="clicked", classes=["no", "yes"])
        gpflow_bsvm.fit(model, rows)
    """

    endings = PARQUET
