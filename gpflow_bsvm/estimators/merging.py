"""Equal rows merged."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from gpflow.base import AnyNDArray

#: With more rows than this, equal rows are not merged.
MERGE_ROWS = 20_000


def merge_equal(X: Any, y: AnyNDArray, weight: AnyNDArray) -> tuple[Any, AnyNDArray, AnyNDArray]:
    """
    :param X: [N, D], an array or SciPy's CSR.
    :return: distinct rows in an order independent of the input, and the sums of their weights, so
        that rounding does not depend on order or repetition; unchanged if there are too many.
    """
    if X.shape[0] > MERGE_ROWS:
        return X, y, weight
    if scipy.sparse.issparse(X):
        keys, axis = _sparse_keys(X, y), None
    else:
        keys, axis = np.column_stack([X, y]), 0
    _, first, member = np.unique(keys, return_index=True, return_inverse=True, axis=axis)
    sums = np.bincount(member.reshape(-1), weight).astype(weight.dtype)
    return X[first], y[first], sums


def _sparse_keys(X: Any, y: AnyNDArray) -> AnyNDArray:
    """:return: [N], keys that are equal where rows and labels are."""
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    ends = zip(X.indptr[:-1], X.indptr[1:])
    keys: AnyNDArray = np.empty(X.shape[0], dtype=object)
    keys[:] = [(X.indices[a:b].tobytes(), X.data[a:b].tobytes(), c) for (a, b), c in zip(ends, y)]
    return keys
