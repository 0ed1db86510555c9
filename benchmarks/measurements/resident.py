"""Most resident memory of a fit whose rows are in Parquet files, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gpflow_bsvm.generated import SUSY_FEATURES, SusyLike

ROWS = (1_000_000, 5_000_000, 20_000_000)
KINDS = ("Parquet", "np.memmap")

_FIT = """
import json, sys, time
import gpflow, numpy as np
import gpflow_bsvm as gb
kind, folder = sys.argv[1:]
def resident():  # the most so far: not getrusage, which begins with that of the starting process
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 2**10
if kind == "Parquet":
    data = gb.files.ParquetFiles(folder, target="y")
else:
    data = tuple(np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in "XY")
Z = np.load(f"{folder}/Z.npz")["Z"]
kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=np.full(18, 18**0.5))
model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(bound="exact"), Z)
before, start = resident(), time.perf_counter()
history = gb.inference.CAVI(max_steps=3).run(model, data, progress=False)
row = {"before_mb": before, "most_mb": resident(), "sweeps": len(history.elbo)}
print(json.dumps({**row, "seconds": time.perf_counter() - start}))
"""


def run() -> Iterator[dict]:
    for number in ROWS:
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as folder:
                _write(kind, Path(folder), number)
                command = [sys.executable, "-c", _FIT, kind, folder]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            row = {"kind": kind, "rows": number, **found}
            print(row, flush=True)
            yield row


def _write(kind: str, folder: Path, number: int) -> None:
    """X in single precision, block by block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = next(iter(SusyLike(min(number, 2**16))))[0]
    centre, spread = first.mean(axis=0), first.std(axis=0)
    np.savez(folder / "Z.npz", Z=(first[:64] - centre) / spread)
    start = 0
    if kind == "np.memmap":
        X, Y = (
            np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float32, (number, width))
            for name, width in (("X", 18), ("Y", 1))
        )
    for block, (rows, labels) in enumerate(SusyLike(number)):
        scaled = ((rows - centre) / spread).astype(np.float32)
        if kind == "np.memmap":
            X[start : start + len(rows)], Y[start : start + len(rows)] = scaled, labels
            start += len(rows)
        else:
            table = dict(zip(SUSY_FEATURES, scaled.T.copy()), y=labels[:, 0])
            pq.write_table(pa.table(table), folder / f"part-{block:04}.parquet")
