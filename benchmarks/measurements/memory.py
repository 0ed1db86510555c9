"""A thousand fits of small models in one process: resident memory and traces."""

from __future__ import annotations

import gc
from pathlib import Path

import gpflow
import numpy as np

import gpflow_bsvm as gb
from gpflow_bsvm.engine import projection
from gpflow_bsvm.inference import cavi


def run(num_fits: int = 1000) -> list[dict]:
    random = np.random.default_rng(0)
    rows = []
    for number in range(num_fits + 1):
        if number % 100 == 0:
            gc.collect()
            rows.append(
                {
                    "fits": number,
                    "resident_mb": _resident_mb(),
                    "traces_sweep": cavi.compiled_sweep.num_traces,
                    "traces_project": projection.compiled_project.num_traces,
                }
            )
        _fit(random)
    return rows


def _fit(random: np.random.Generator) -> None:
    X = random.normal(size=(random.integers(40, 80), 3))
    Y = (X[:, :1] + 0.3 * random.normal(size=(len(X), 1)) > 0).astype(float)
    model = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(random.uniform(1, 4), lengthscales=random.uniform(1, 3)),
        gb.likelihoods.Hinge(penalty=random.uniform(1, 3), bound="exact"),
        X[:10].copy(),
        num_data=len(X),
    )
    gb.fit(model, (X, Y), progress=False)
    model.predict_y(X)


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20
