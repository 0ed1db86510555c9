"""The same rows in all kinds of sources."""

import numpy as np
import scipy.sparse
import tensorflow as tf
from helpers import source_of

from gpflow_bsvm.data.batch import SparseRows
from gpflow_bsvm.data.readers import DatasetBatches
from gpflow_bsvm.data.sources import ArraySource


class Unchecked:
    def rows(self, X, Y, origin):
        return X, Y

    def labels(self, Y):
        pass


def stream_of(dataset, chunk_rows):
    return DatasetBatches(dataset).opened(Unchecked(), chunk_rows)


def dataset_of(data, sizes, weight=None):
    columns = data if weight is None else (*data, weight)
    ends = np.cumsum(sizes)
    batches = [tuple(c[end - n : end] for c in columns) for end, n in zip(ends, sizes)]
    spec = tuple(tf.TensorSpec([None, *c.shape[1:]], c.dtype) for c in columns)
    return tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=spec)


def sources(data, chunk_rows):
    """The same rows in all kinds of sources."""
    weight = np.linspace(0.5, 2, len(data[0]))[:, None]
    yield source_of(data, weight, chunk_rows)
    sparse = SparseRows(scipy.sparse.csr_matrix(data[0]))
    yield ArraySource(sparse, data[1], weight, chunk_rows)
    yield stream_of(dataset_of(data, [20, 7, 23], weight), chunk_rows)
