"""A pass beyond the cache beside its matrix products alone, in processor time.

Meant for one thread: TF_NUM_INTRAOP_THREADS=1 and TF_NUM_INTEROP_THREADS=1, as those that wait
count, too.

With both bounds and several numbers of inducing points; the rows are those of `passes`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from unittest import mock

from gpflow_bsvm.engine import projected_data

from .passes import a_pass, rate_of_products, standardised_rows, usual_model

#: Rows by number of inducing points.
SIZES, REPEATS = {64: 1_000_000, 128: 500_000, 256: 200_000}, 7


def run() -> Iterator[dict]:
    for number, num_rows in SIZES.items():
        X, Y = standardised_rows(num_rows)
        Z = X[:number].copy()
        rate = rate_of_products(X, Z, _processor_seconds)
        with mock.patch.object(projected_data, "CACHE_BYTES", 0):
            passes = {
                bound: a_pass(usual_model(Z, bound), X, Y) for bound in ("exact", "augmented")
            }
            for run in (rate, *passes.values()):  # traces
                run()
            for repeat in range(REPEATS):
                products = num_rows / rate()
                for bound, run in passes.items():
                    ratio = _processor_seconds(run) / products
                    yield {"bound": bound, "M": number, "repeat": repeat, "ratio": ratio}


def _processor_seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
