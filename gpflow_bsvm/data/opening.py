"""Convert a user's data to a source."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from .checks import check_weights
from .readers import Blocks, Check, DatasetBatches, MappedArrays, Reader
from .sources import ArraySource, Source

#: Makes a `Reader` of Dask collections X, Y and weights; `cluster` adds it on import.
OPENERS: list[Callable[[Any, Any, Any], Reader]] = []


def open_source(data: Any, check: Check, chunk_rows: int, sample_weight: Any = None) -> Source:
    """
    :param data: see `gpflow_bsvm.data`; or an opened `Source`, which is returned.
    :param check: the model's check: of arrays in memory now, of other data while they are read.
    :param chunk_rows: rows per chunk.
    :param sample_weight: [N], only with arrays; if None, all are 1.
    :raise ValueError: for bad data or weights.
    :raise TypeError: for other data, and for iterators, which can be read only once.
    """
    if _holds_arrays(data):
        source = _of_arrays(data, check, chunk_rows, sample_weight)
    else:
        source = data if isinstance(data, Source) else _of_others(data)
        if sample_weight is not None:
            raise ValueError(
                "sample_weight=... is only for arrays; other data include their weights, as the "
                "third component of a block, or in files as the column weight=..."
            )
    if isinstance(source, Reader) and not source.chunk_rows:
        return source.opened(check, chunk_rows)
    return source


def _of_arrays(data: Any, check: Check, chunk_rows: int, sample_weight: Any) -> Source:
    if len(data) != 2:
        raise ValueError(
            f"arrays must be a pair (X, Y), got {len(data)} parts; weights are given as "
            "sample_weight=..."
        )
    X, Y = data
    if hasattr(X, "__dask_graph__"):
        if not OPENERS:
            raise TypeError("X is a Dask collection: to read it, import gpflow_bsvm.cluster first")
        return OPENERS[0](X, Y, sample_weight)
    base = X
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap):
        return MappedArrays(X, Y, sample_weight)
    X, Y = check.rows(X, Y, None)
    return ArraySource(X, Y, check_weights(sample_weight, len(X)), chunk_rows)


def _of_others(data: Any) -> Source:
    if isinstance(data, tf.data.Dataset):
        return DatasetBatches(data)
    if isinstance(data, (str, os.PathLike)):
        raise TypeError(
            f"{str(data)!r} is a path: use gpflow_bsvm.files.ParquetFiles or CSVFiles, with the "
            "path and target=..., the name of the label column"
        )
    if hasattr(data, "shape") or isinstance(data, dict) or not isinstance(data, Iterable):
        raise TypeError(
            "data must be arrays (X, Y), a Reader such as gpflow_bsvm.files.ParquetFiles, a "
            "tf.data.Dataset, or an object that can be iterated over repeatedly and yields "
            f"blocks (X, Y); got {type(data).__name__}"
        )
    return Blocks(data)


def _holds_arrays(data: Any) -> bool:
    """:return: True for a pair of arrays, False for a list of blocks (X, Y)."""
    if isinstance(data, list):
        blocks = all(isinstance(part, tuple) and len(part) in (2, 3) for part in data)
        return not (data and blocks and all(np.ndim(one) > 0 for part in data for one in part))
    return isinstance(data, tuple)
