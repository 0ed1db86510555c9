"""A table of predictions, written part by part: what was written outlives the process."""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .data.prefetch import closed_at_end
from .data.readers import Part
from .data.streams import StreamSource
from .inference.checkpoint import Checkpoints
from .inference.history import progress_bar
from .optional import require
from .version import __version__

#: Rows that are read, predicted and written at a time.
PART_ROWS = 100_000
#: Bytes that are looked at together.
_BLOCK = 2**20


class Reached(NamedTuple):
    """How far a table is."""

    rows: int = 0
    size: int = 0  #: bytes
    digest: str = hashlib.sha256().hexdigest()  #: of these


def predict_table(
    classifier: Any,
    rows: Any,
    output: Path,
    model: str,
    progress: bool | None = None,
    key: str | None = None,
) -> tuple[int, int]:
    """
    Write a CSV with a column for the probability of each class, and the label. Until it is whole it
    lies in a directory beside (`unfinished`) with how far it is, and the same call goes on there.

    :param rows: a reader of files.
    :param output: the file, which is replaced if there is one.
    :param model: what tells the classifier from others.
    :param progress: show a progress bar; None: on a terminal only.
    :param key: name of a column that the table begins with, as it is in the files.
    :return: rows, and how many of them an earlier call had written.
    :raise ValueError: for bad rows, or if what is there is of other rows or another classifier.
    :raise OSError: if it cannot be written; what is there stays.
    """
    from .estimators import survey

    if key is not None and (key == "label" or key.startswith("p(")):
        raise ValueError(
            f"--id {key} is the name of a column of predictions: rename it in the table"
        )
    about = {"version of gpflow_bsvm": __version__, "model": model, **rows.marks, "key": str(key)}
    check = StreamSource(rows, survey.Rows(labelled=False), PART_ROWS).checked
    directory = unfinished(output)
    checkpoints = Checkpoints(directory, 1, lambda: about | {"rows of a part": str(PART_ROWS)})
    path, stored = directory / "rows.csv", checkpoints.latest(Reached())
    path.touch()
    with open(path, "r+b") as file, progress_bar(rows.num_rows, "predict", progress, "row") as bar:
        start = Reached() if stored is None else stored
        table = _Table(classifier, list(rows.features), file, start)
        bar.update(table.reached.rows)
        before = table.reached.rows
        keys = None if key is None else itertools.islice(rows.texts(key), before, None)
        with closed_at_end(Part(rows, before).pieces(PART_ROWS)) as pieces:
            for piece in map(check, pieces):
                own = {} if keys is None else {key: list(itertools.islice(keys, len(piece.X)))}
                reached = table.write(piece.X, own)
                checkpoints.offer(reached.rows, partial(Reached, *reached))
                bar.update(len(piece.X))
    os.replace(path, output)
    shutil.rmtree(directory, ignore_errors=True)
    return table.reached.rows, before


def unfinished(output: Path) -> Path:
    """:return: where what is to be `output` lies until it is whole."""
    return output.with_name(f"{output.name}.partial")


class _Table:
    """The file under way."""

    def __init__(
        self, classifier: Any, features: list[str], file: BinaryIO, start: Reached
    ) -> None:
        """:param start: where to go on, if the file is what it was there; else at its beginning."""
        self._classifier, self._features, self._file = classifier, features, file
        self._digest = _digest(file, start.size)
        whole = self._digest.hexdigest() == start.digest
        self.reached = start if whole else Reached()
        if not whole:
            self._digest = hashlib.sha256()
        file.truncate(self.reached.size)
        file.seek(self.reached.size)

    def write(self, X: Any, keys: Mapping[Any, list[Any]]) -> Reached:
        """:return: how far the table is with these rows, which are on disk then."""
        pandas, classes = require("pandas"), np.array([*map(str, self._classifier.classes_)])
        p = self._classifier.predict_proba(pandas.DataFrame(X, columns=self._features))
        columns = {f"p({label})": column for label, column in zip(classes, p.T)}
        table = pandas.DataFrame({**keys, **columns, "label": classes[np.argmax(p, axis=1)]})
        first = self.reached.rows == 0
        text = table.to_csv(index=False, float_format="%.10g", header=first).encode()
        self._file.write(text)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._digest.update(text)
        rows, size = self.reached.rows + len(p), self.reached.size + len(text)
        self.reached = Reached(rows, size, self._digest.hexdigest())
        return self.reached


def _digest(file: BinaryIO, size: int) -> Any:
    """:return: of the first bytes of a file; of all, if it is shorter."""
    digest = hashlib.sha256()
    while size > 0 and (block := file.read(min(size, _BLOCK))):
        digest.update(block)
        size -= len(block)
    return digest


def digest_of(path: Path) -> str:
    """:return: what tells a file from others."""
    with open(path, "rb") as file:
        return str(_digest(file, path.stat().st_size).hexdigest()[:12])
