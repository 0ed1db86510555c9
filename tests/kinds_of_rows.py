"""The same rows in every kind of data that a fit takes."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import scipy.sparse
import tensorflow as tf
from helpers import make_data

from gpflow_bsvm.data import Blocks
from gpflow_bsvm.files import CSVFiles, ParquetFiles

N = 200
CUTS = [0, 30, 31, 150, N]


def rows_in_memory():
    X, Y = make_data(N)
    return X.astype(np.float32).astype(float), Y  # as it comes back from single precision


def table_of(data, weight=None, labels=None):
    X, Y = data
    columns = {f"x{n}": column for n, column in enumerate(X.T)}
    columns["y"] = Y[:, 0] if labels is None else labels
    return pa.table(columns if weight is None else columns | {"w": weight})


def parts_of(table):
    return [table[a:b] for a, b in itertools.pairwise(CUTS)]


def parquet(folder, table, name="rows"):
    """Files of several row groups."""
    (folder / name).mkdir()
    for number, part in enumerate(parts_of(table)):
        pq.write_table(part, folder / name / f"part-{number}.parquet", row_group_size=40)
    return folder / name


def csv(folder, table, name="texts"):
    (folder / name).mkdir()
    for number, part in enumerate(parts_of(table)):
        pa.csv.write_csv(part, folder / name / f"part-{number}.csv")
    return folder / name


def mapped(folder, values, name="X.npy"):
    np.save(folder / name, values)
    return np.load(folder / name, mmap_mode="r")


def block_list(data, weight=None):
    columns = data if weight is None else (*data, weight)
    return [tuple(c[a:b] for c in columns) for a, b in itertools.pairwise(CUTS)]


class Anew:
    """Anything whose `iter()` starts anew."""

    def __init__(self, blocks):
        self.blocks = blocks

    def __iter__(self):
        return iter(self.blocks)


def kinds(folder, data, weight):
    """The same rows in every kind of data, and the weights that are given beside them."""
    single = mapped(folder, data[0].astype(np.float32))
    columns = {"target": "y", "weight": "w"}
    table, made = table_of(data, weight), block_list(data, weight)
    return {
        "memmap": ((single, mapped(folder, data[1], "Y.npy")), weight),
        "plain view of a memmap": ((np.asarray(single)[:, :], data[1]), weight),
        "parquet": (ParquetFiles(parquet(folder, table), **columns), None),
        "csv": (CSVFiles(csv(folder, table), **columns), None),
        "list": (made, None),
        "object": (Anew(made), None),
        "function": (Blocks(lambda: (block for block in made), num_rows=N), None),
        "sparse": ([(scipy.sparse.csr_array(X), Y, w) for X, Y, w in made], None),
        "dataset": (
            tf.data.Dataset.from_tensor_slices((*data, weight)).batch(30),
            None,
        ),
    }
