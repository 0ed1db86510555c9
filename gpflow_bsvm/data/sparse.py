"""Sparse rows that behave like an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from gpflow.base import AnyNDArray


class SparseRows:
    """A SciPy sparse matrix whose slices are dense: `rows[100:200]` is an ndarray."""

    def __init__(self, matrix: Any) -> None:
        """:param matrix: [N, D], any of SciPy's formats."""
        self._matrix = scipy.sparse.csr_matrix(matrix)
        self.shape: tuple[int, int] = self._matrix.shape
        self.dtype: np.dtype[Any] = self._matrix.dtype
        self.ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> AnyNDArray:
        return np.asarray(self._matrix[index].toarray())

    def part(self, index: AnyNDArray) -> SparseRows:
        """:return: the rows at these indices, still sparse."""
        return SparseRows(self._matrix[index])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyNDArray:
        return np.asarray(self._matrix.toarray(), dtype)

    @property
    def parts(self) -> tuple[AnyNDArray, ...]:
        """:return: the arrays that determine the matrix."""
        matrix = self._matrix
        return matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)

    @property
    def values(self) -> AnyNDArray:
        """:return: the stored entries."""
        return np.asarray(self._matrix.data)
