"""CAVI on every binary set of the data directory: the ELBO never falls, whatever the bound."""

from __future__ import annotations

import os
from pathlib import Path

import gpflow
import numpy as np

import gpflow_bsvm as gb

from ._common import standardised

KERNELS = {"moderate": (4.0, 1.0), "large variance": (30.0, 0.7)}


def run() -> list[dict]:
    folder = Path(os.environ["GPFLOW_BSVM_DATA"]) / "binary"
    names = sorted(path.name.removesuffix(".csv.gz") for path in folder.glob("*.csv.gz"))
    return [
        _fit(name, bound, kernel)
        for name in names
        for bound in ("exact", "augmented")
        for kernel in KERNELS
    ]


def _fit(name: str, bound: str, kernel: str) -> dict:
    X, Y = standardised(f"binary/{name}")
    Z = gb.inducing_points.kmeans(X, min(100, len(X)))
    variance, factor = KERNELS[kernel]
    model = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(variance, lengthscales=factor * np.sqrt(X.shape[1])),
        gb.likelihoods.Hinge(bound=bound),
        Z,
        num_data=len(X),
    )
    history = gb.inference.CAVI().run(model, (X, Y), progress=False)
    elbo = np.array(history.elbo)
    fall = np.max(-np.diff(elbo), initial=0.0) / abs(elbo[-1])
    return {
        "data": name,
        "n": len(X),
        "d": X.shape[1],
        "bound": bound,
        "kernel": kernel,
        "sweeps": len(history),
        "smallest_rho": min(history.learning_rate),
        "largest_relative_fall": fall,
        "elbo": elbo[-1],
        "finite": bool(np.isfinite(elbo).all()),
    }
