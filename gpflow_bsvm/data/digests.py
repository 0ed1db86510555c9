"""Short digests of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from .batch import Batch
from .sparse import SparseRows

#: Number of hexadecimal digits: two contents have equal digests with probability 1e-14.
_DIGITS = 12


def digest(content: str | AnyNDArray) -> str:
    """:return: a digest of a text or of the bytes of an array."""
    data = content.encode() if isinstance(content, str) else _bytes(content)
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _bytes(array: Any) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def digests(batches: Iterable[Any]) -> dict[str, str]:
    """
    :param batches: X, Y and weights of all rows, in any partition.
    :return: a digest of each column; any changed number changes it.
    """
    sums = [hashlib.sha256() for _ in Batch._fields]
    rows = 0
    kinds = [""] * len(Batch._fields)
    for batch in batches:
        rows += len(batch[0])
        for number, column in enumerate(batch):
            kinds[number] = f"{[rows, *column.shape[1:]]} {column.dtype.name}"
            for part in column.parts if isinstance(column, SparseRows) else [column]:
                sums[number].update(_bytes(part))
    told = zip(Batch._fields, kinds, sums)
    return {n: f"{k} ({one.hexdigest()[:_DIGITS]})" for n, k, one in told}
