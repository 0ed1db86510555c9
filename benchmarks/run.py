"""Run measurements: rows go to `benchmarks/results`, which `draw.py` reads.

    GPFLOW_BSVM_DATA=... python benchmarks/run.py [NAME ...]

A name is that of a module in `measurements`; without one, all run. Ratios between methods of the
same run are what counts: an absolute time is one of the machine that `results/NAME.json` names.
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

import store

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("measurements/[a-z]*.py"))


def main(names: list[str]) -> None:
    if unknown := set(names) - set(NAMES):
        sys.exit(f"unknown measurement {sorted(unknown)}; there are: {' '.join(NAMES)}")
    for name in names or NAMES:
        start, origin = time.perf_counter(), store.origin()
        rows = list(importlib.import_module(f"measurements.{name}").run())
        if rows:  # there are none where a file is missing that not everybody has
            store.write(name, rows, origin)
        print(f"{name}: {len(rows)} rows in {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
