"""Dask workers killed with SIGKILL in the middle of a fit: where does it end?

Each fit is first left alone. Then, at a random moment of it, one of two workers is killed; "equal"
says whether all records and all of q are those of the fit left alone, to the last bit.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import distributed
import gpflow
import numpy as np

import gpflow_bsvm as gb

from .cluster import ONE_THREAD, on_cluster

NUM_ROWS, PARTITION, KILLS = 60_000, 6_000, 10
FITS = {
    "CAVI": gb.inference.CAVI(max_steps=12, tol=0),
    "VEM": gb.inference.VEM(max_steps=2, tol=0),
}


def run(kills: int = KILLS) -> Iterator[dict]:
    os.environ.update(ONE_THREAD)
    random = np.random.default_rng(0)
    options = {"threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(2, **options) as cluster, distributed.Client(cluster) as client:
        for name in FITS:
            _fit(name, client)  # traces
            alone, long = _fit(name, client)
            for number in range(kills):
                after = random.uniform(0.05, 0.95) * long
                killer = threading.Timer(after, _kill, (cluster, random))
                killer.start()
                found, seconds = _fit(name, client)
                killer.join()
                yield {
                    "fit": name,
                    "kill": number + 1,
                    "after": after,
                    "alone_seconds": long,
                    "seconds": seconds,
                    "equal": all(map(np.array_equal, alone, found)),
                }


def _fit(name: str, client: distributed.Client) -> tuple[list, float]:
    client.wait_for_workers(2)
    X, _ = gb.generated.SusyLike(2000).arrays()
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=np.full(18, 18**0.5))
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(bound="augmented"), X[:32])
    gpflow.set_trainable(model.inducing_variable, False)
    start = time.perf_counter()
    history = FITS[name].run(model, on_cluster(NUM_ROWS, PARTITION))
    seconds = time.perf_counter() - start
    return [history.elbo, model.q_mu.numpy(), model.q_sqrt.numpy()], seconds


def _kill(cluster: distributed.LocalCluster, random: np.random.Generator) -> None:
    worker = random.choice(list(cluster.workers.values()))
    os.kill(worker.process.pid, signal.SIGKILL)
