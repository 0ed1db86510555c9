"""Dask arrays and data frames, partition by partition."""

from __future__ import annotations

import contextlib
import copy
import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..data.batch import Origin, Piece, digests
from ..data.readers import Check, Reader, checked
from ..data.sources import Remote, Source
from ..optional import require
from ..tables.cells import arrow, as_labels
from ..tables.columns import Columns, chosen_words
from ..tables.paths import own_columns
from ..tables.reading import Reading
from .partitions import Cluster, Partitions, all_together, checked_partitions, has_rows, named


def present_client() -> Any:
    """:return: the current `dask.distributed.Client`, or None."""
    with contextlib.suppress(KeyError, ValueError):  # not imported, or no client
        return sys.modules["distributed"].default_client()
    return None


class DaskReader(Reader):
    """
    Rows that Dask computes partition by partition. With a `dask.distributed.Client`, passes run on
    the workers that hold the partitions, see `gpflow_bsvm.cluster`. Without a client, every pass,
    and every group of minibatches, computes the partitions one by one, at some milliseconds each:
    repartition small ones, and call `dask.persist` on rows that fit in memory.

    :ivar partitions: for each partition, Dask's `Delayed` of a `Piece` with its rows.
    """

    finite = True
    #: A function that returns the rows on a client's workers; None if opened without a client.
    _workers: Callable[[], Partitions] | None = None

    def __init__(self, partitions: Sequence[Any]) -> None:
        self.partitions = list(partitions)

    def opened(self, check: Check, chunk_rows: int) -> Source:
        """See `Reader`; uses the workers of the current client, if there is one."""
        rows = copy.copy(self)
        if (client := present_client()) is not None:
            read = functools.partial(checked_partitions, Cluster(client), self.partitions)
            rows._workers = functools.cache(functools.partial(read, check, chunk_rows))
        return super(DaskReader, rows).opened(check, chunk_rows)

    @property
    def num_rows(self) -> int:
        """:return: N; if necessary, a pass over the data computes it."""
        if self._workers is None or self.known_rows is not None:
            return super().num_rows
        return sum(self._workers().rows)

    @property
    def remote(self) -> Remote | None:
        """See `Source`; the first call also checks all rows."""
        if self._workers is None:
            return None
        rows = self._workers()
        for view in self._views:
            rows = rows.projected(view)
        return rows

    def pieces(self, size: int) -> Iterator[Piece]:
        for piece in self._filled():
            yield from piece.cut(size)

    def _filled(self) -> Iterator[Piece]:
        """:return: the partitions that have rows; after a filter, some have none."""
        for number, partition in enumerate(self.partitions):
            try:
                piece: Piece = partition.compute()
            except Exception as error:  # Dask and its storage may raise anything
                raise named(error, number) from error
            if has_rows(piece):
                yield piece

    def digests(self) -> Mapping[str, str]:
        """See `Source`; digests are equal with and without a client."""
        if self.remote is not None:
            return self.remote.digests()
        cut = (piece.cut(self.chunk_rows) for piece in self._filled())
        batches = ((self._tensors(checked(one, self._asked)) for one in part) for part in cut)
        return all_together([*map(digests, batches)])


class DaskFrame(DaskReader):
    """
    Rows of a Dask data frame, such as the result of `dask.dataframe.read_parquet`::

        rows = DaskFrame(dask.dataframe.read_parquet("s3://..."), target="label")

    :ivar features: names of the columns of X.
    :ivar classes: see `ParquetFiles`, also for `classes_in_order`.
    """

    classes_in_order = True

    def __init__(
        self,
        frame: Any,
        target: str | None = None,
        *,
        weight: str | None = None,
        features: Sequence[str] | None = None,
        classes: Any = None,
    ) -> None:
        """
        :param target: name of the label column, which holds numbers in the likelihood's format;
            None for predictions.
        :param weight: name of the weight column; None: all weights are 1.
        :param features: names of the columns of X, in order; None: all other columns except an
            index written by pandas.
        :param classes: labels of any type, which become numbers, as in `ParquetFiles`. "auto": a
            pass finds and sorts the labels; an ordered categorical keeps its order.
        :raise TypeError: for anything but a Dask data frame.
        :raise ValueError: for missing or non-numeric columns.
        """
        if not (is_of_dask(frame) and hasattr(frame, "columns") and frame.ndim == 2):
            raise TypeError(
                f"DaskFrame takes a Dask data frame, got {type(frame).__name__}: give arrays and "
                "pandas data frames to a fit as (X, y)"
            )
        frame = frame.rename(columns=str)  # pyarrow would read a number as a column's place
        target, weight = (None if name is None else str(name) for name in (target, weight))
        names = list(frame.columns)
        others = [name for name in own_columns(names) if name not in (target, weight)]
        wanted = others if features is None else [*(Reading(features=features).features or ())]
        words = chosen_words(wanted, names)
        Columns(words, target, weight, wanted, None).check_names(names, "the data frame")
        if isinstance(classes, str) and classes == "auto" and target is not None:
            self.classes_in_order = bool(getattr(frame[target].dtype, "ordered", False))
            classes = _distinct(frame[target])
        self.columns = Columns(words, target, weight, wanted, classes)
        self.features = self.columns.features
        self.classes = self.columns.classes
        encoded = {*words, *([] if classes is None else [target])}
        _check_numbers(
            frame.dtypes[[one for one in self.columns.read if one not in encoded]], target
        )
        piece = require("dask", extra="dask").delayed(_piece_of_frame)
        parts = frame[self.columns.read].to_delayed()
        super().__init__([piece(self.columns, one, part) for part, one in enumerate(parts)])


def _check_numbers(dtypes: Any, target: str | None) -> None:
    is_numeric = require("pandas", extra="dask").api.types.is_numeric_dtype
    for name, dtype in dtypes.items():
        if not is_numeric(dtype):
            how = 'give classes="auto"' if name == target else "leave it out of features=[...]"
            raise ValueError(
                f"column {name!r} of the data frame must hold numbers, got {dtype}: {how}"
            )


def _distinct(column: Any) -> list[Any]:
    """:return: a column's labels, as files have them; ordered categories keep their order."""
    found = column.unique().compute()
    if found.isna().any():
        raise ValueError(f"column {column.name!r} holds empty labels; drop such rows first")
    if getattr(found.dtype, "ordered", False):
        return list(found.sort_values().tolist())
    cells = arrow.array(found, from_pandas=True)
    if isinstance(cells, arrow.ExtensionArray):  # periods, which would become their numbers
        raise ValueError(
            f"column {column.name!r} holds labels of type {found.dtype}: give strings, as from "
            "astype(str)"
        )
    return sorted(as_labels(cells).to_pylist())


def is_of_dask(X: Any) -> bool:
    """:return: True if Dask computes X; False for xarray's arrays in memory, for instance."""
    return "dask" in sys.modules and bool(sys.modules["dask"].is_dask_collection(X))


def dask_reader(X: Any, Y: Any = None, weight: Any = None) -> DaskReader:
    """
    :param X: [N, D], a `dask.array.Array`, whose chunks of rows are the partitions; or, for
        predictions, a Dask data frame. Y [N, P] or [N] and weight [N] are Dask arrays or arrays in
        memory.
    :raise ValueError: for a data frame with separate labels or weights, which it must include; if
        lengths, or numbers of partitions of unknown lengths, differ.
    """
    if not hasattr(X, "columns"):
        return _of_arrays(X, Y, weight)
    if Y is None and weight is None:
        return DaskFrame(X)
    raise ValueError(
        "a Dask data frame must include labels and weights: give gpflow_bsvm.cluster.DaskFrame("
        "frame, target=..., weight=...) with the names of their columns"
    )


def _of_arrays(X: Any, Y: Any, weight: Any) -> DaskReader:
    array = require("dask.array", extra="dask")
    if not isinstance(X, array.Array) or X.ndim != 2:
        what = f"shape {X.shape}" if isinstance(X, array.Array) else type(X).__name__
        raise ValueError(f"X must be a Dask array [N, D], such as xarray's X.data, got {what}")
    X = X.rechunk({1: -1})
    beside = [_beside(X, one, name) for one, name in ((Y, "Y"), (weight, "sample_weight"))]
    none = [None] * X.numblocks[0]
    Xs, Ys, weights = (none if c is None else c.to_delayed().ravel() for c in (X, *beside))
    piece = require("dask", extra="dask").delayed(_piece_of_arrays)
    reader = DaskReader([piece(*of, part) for part, of in enumerate(zip(Xs, Ys, weights))])
    reader.known_rows = int(X.shape[0]) if np.isfinite(X.shape[0]) else None
    return reader


def _beside(X: Any, column: Any, name: str) -> Any:
    """:return: a column with the partitions of X."""
    if column is None:
        return None
    column = _as_array(column, name)
    if name == "Y" and column.dtype.kind in "OUS":
        raise ValueError(
            f"the labels of a Dask array must be numbers, got dtype {column.dtype}: number them, "
            'or give gpflow_bsvm.cluster.DaskFrame(frame, target=..., classes="auto")'
        )
    column = column if column.ndim == 1 else column.rechunk({1: -1})
    known = np.isfinite(X.shape[0]) and np.isfinite(column.shape[0])
    if known and len(column) != len(X):
        raise ValueError(f"X has {len(X)} rows and {name} has {len(column)}; they must be equal")
    if known:
        return column.rechunk({0: X.chunks[0]})
    if column.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"X has {X.numblocks[0]} partitions and {name} has {column.numblocks[0]}, of unknown "
            "lengths: partition both equally, or call compute_chunk_sizes() on both"
        )
    return column


def _as_array(column: Any, name: str) -> Any:
    """:return: a column as a Dask array."""
    array = require("dask.array", extra="dask")
    if not is_of_dask(column):
        return array.from_array(np.asarray(column))
    if hasattr(column, "to_dask_array"):  # of a data frame
        return column.to_dask_array()
    if not isinstance(column, array.Array):
        raise ValueError(f"{name} must be a Dask array or column, got {type(column).__name__}")
    return column


def _piece_of_arrays(X: Any, Y: Any, weight: Any, part: int) -> Piece:
    Y = Y[:, None] if np.ndim(Y) == 1 else Y
    return Piece(X, Y, weight, Origin(0, str(part), kind="partition"))


def _piece_of_frame(columns: Columns, frame: Any, part: int) -> Piece:
    columns.check_names(list(frame.columns), f"partition {part}")
    table = require("pyarrow", extra="dask").RecordBatch.from_pandas(frame, preserve_index=False)
    return Piece._make(columns.piece(table, Origin(0, str(part), kind="partition")))
