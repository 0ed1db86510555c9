"""A table of predictions, written part by part, which gets its name when it is whole."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .atomic import whole_file
from .data.prefetch import closed_at_end
from .data.streams import StreamSource
from .inference.history import progress_bar
from .optional import require

#: Rows that are read, predicted and written at a time.
PART_ROWS = 100_000


def predict_table(
    classifier: Any,
    rows: Any,
    output: Path,
    progress: bool | None = None,
    key: str | None = None,
) -> int:
    """
    Write a CSV with a column for the probability of each class, and the label.

    :param rows: a reader of files.
    :param output: the file, which is replaced if there is one; as a whole or not at all.
    :param progress: show a progress bar; None: on a terminal only.
    :param key: name of a column that the table begins with, as it is in the files.
    :return: number of rows.
    :raise ValueError: for bad rows.
    :raise OSError: if it cannot be written.
    """
    from .estimators import survey

    if key is not None and (key == "label" or key.startswith("p(")):
        raise ValueError(
            f"--id {key} is the name of a column of predictions: rename it in the table"
        )
    check = StreamSource(rows, survey.Rows(labelled=False), PART_ROWS).checked
    features = list(rows.features)
    keys = iter(()) if key is None else rows.texts(key)
    written = 0
    with (
        whole_file(output) as file,
        progress_bar(rows.num_rows, "predict", progress, "row") as bar,
        closed_at_end(rows.pieces(PART_ROWS)) as pieces,
    ):
        for piece in map(check, pieces):
            number = len(piece.X)
            own = {} if key is None else {key: list(itertools.islice(keys, number))}
            table = _table(classifier, features, piece.X, own)
            file.write(_csv(table, header=written == 0))
            written += number
            bar.update(number)
    return written


def _table(classifier: Any, features: list[str], X: Any, keys: Mapping[str, list[Any]]) -> Any:
    """:return: a data frame of predictions."""
    pandas, classes = require("pandas"), np.array([*map(str, classifier.classes_)])
    p = classifier.predict_proba(pandas.DataFrame(X, columns=features))
    columns = {f"p({label})": column for label, column in zip(classes, p.T)}
    return pandas.DataFrame({**keys, **columns, "label": classes[np.argmax(p, axis=1)]})


def _csv(table: Any, header: bool) -> bytes:
    return str(table.to_csv(index=False, float_format="%.10g", header=header)).encode()
