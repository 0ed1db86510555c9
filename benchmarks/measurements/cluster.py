"""A pass over rows on one and on two Dask workers of one thread each, and in one process.

"kept": whether features stay on the workers; else they are made anew, as where they do not fit.
"task": a pass over partitions of ten rows, by their number: what a task costs. "sum": bytes of the
sums that a partition sends back.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Iterator

import dask
import dask.array as da
import distributed
import gpflow
import numpy as np

import gpflow_bsvm as gb
from gpflow_bsvm.cluster import client as cluster
from gpflow_bsvm.data.batch import Batch
from gpflow_bsvm.engine.contracts import open_all
from gpflow_bsvm.generated import SusyLike

NUM_ROWS, PARTITION, NUM_INDUCING, REPEATS, TINY = 5_000_000, 100_000, 64, 4, 200
ONE_THREAD = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


def run(num_rows: int = NUM_ROWS) -> Iterator[dict]:
    model = _model()
    for workers in (1, 2):
        with _client(workers):
            yield from _passes(model, TINY * 10, workers, False, partition=10)
            for kept in (False, True):
                yield from _passes(model, num_rows, workers, kept)


def _model() -> gb.models.BSVM:
    X, _ = SusyLike(2000).arrays()
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=np.full(18, 18**0.5))
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(), X[:NUM_INDUCING])
    gb.inference.CAVI(max_steps=3).run(model, SusyLike(5000).arrays())
    return model


def _client(workers: int) -> distributed.Client:
    # The environment of a nanny is that of the process before anything is imported.
    with dask.config.set({"distributed.nanny.pre-spawn-environ": ONE_THREAD}):
        return distributed.Client(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0
        )


def _block(start: int, size: int, column: int) -> np.ndarray:
    return SusyLike(size, start=start).arrays()[column]


def on_cluster(num_rows: int, partition: int = PARTITION) -> tuple[da.Array, da.Array]:
    """:return: X and Y, which workers make themselves."""
    columns = []
    for column, width in ((0, 18), (1, 1)):
        blocks = [
            da.from_delayed(
                dask.delayed(_block)(start, partition, column), (partition, width), float
            )
            for start in range(0, num_rows, partition)
        ]
        columns.append(da.concatenate(blocks))
    return tuple(columns)


def _count(batch: Batch) -> int:
    return len(batch.Y)


def _passes(
    model: gb.models.BSVM,
    num_rows: int,
    workers: int,
    kept: bool,
    partition: int = PARTITION,
) -> Iterator[dict]:
    source = open_all(model, on_cluster(num_rows, partition))
    source.remote.sum(_count, (), operator.add)  # rows are there
    part, cluster._KEPT_PART = cluster._KEPT_PART, 0.9 if kept else 0.0
    fit = gb.inference.CAVI()._begin(model, source)
    for number in range(REPEATS + 1):
        start = time.perf_counter()
        point = fit._move(fit.state.ascent.point, 1.0)
        if number:
            row = {
                "rows": num_rows,
                "partitions": num_rows // partition,
                "workers": workers,
                "kept": kept,
                "repeat": number,
                "seconds": time.perf_counter() - start,
                "sum_bytes": sum(leaf.numpy().nbytes for leaf in point.sums),
            }
            print(row, flush=True)
            yield row
    cluster._KEPT_PART = part
