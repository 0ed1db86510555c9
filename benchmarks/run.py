"""Run measurements and write their rows to `benchmarks/results`; `tables.py` only reads them.

    GPFLOW_BSVM_DATA=... python benchmarks/run.py [NAME ...]

Ratios between methods of the same run are what counts: an absolute time is one of this machine.
"""

from __future__ import annotations

import importlib
import sys
import time

from common import write_rows

NAMES = (
    "step",
    "sweeps",
    "failure",
    "memory",
    "monotone",
    "table1",
    "compare",
    "classes",
    "multiclass",
    "published",
    "learning",
    "robust",
    "lengthscale",
    "inducing",
    "relevance",
    "quality",
    "linear",
    "kernel",
    "runtime",
    "draws",
)


def main(names: list[str]) -> None:
    unknown = set(names) - set(NAMES)
    if unknown:
        sys.exit(f"unknown measurement {sorted(unknown)}; there are: {' '.join(NAMES)}")
    for name in names or NAMES:
        start = time.perf_counter()
        rows = importlib.import_module(name).run()
        write_rows(name, rows)
        print(f"{name}: {len(rows)} rows in {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
