"""Small tables, and what is read of them."""

import numpy as np

from gpflow_bsvm.data.batch import Origin
from gpflow_bsvm.tables.reading import Reading
from gpflow_bsvm.tables.table import Table

LABELS = ["u", "v", "v", "u", "u", "v"]


def table(folder, values, separator=",", **options):
    path = folder / "t.csv"
    rows = [f"{value}{separator}{label}" for value, label in zip(values, LABELS)]
    path.write_text("\n".join([f"a{separator}y", *rows]) + "\n")
    return read(path, **({"classes": "auto", "words": True} | options))


def read(path, **options):
    return Table([str(path)], Reading("y", **options))


def values(found):
    """:return: X of all rows of a table."""
    pieces = [
        found.columns.piece(batch, Origin(0, file.path))[0]
        for file in found.files
        for batch in file.batches(found.columns.read, 4)
    ]
    return np.concatenate(pieces)
