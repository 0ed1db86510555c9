"""What is wrong with the published multi-class objective: it is no bound, and it is no ascent.

Rows of kind "gap": objectives minus the exact expectation, for C classes of equal mean, the label's
1 above them, and equal standard deviation. Rows of kind "sweep": objectives on digits, M = 100.
"""

from __future__ import annotations

from collections.abc import Iterator

import gpflow
import numpy as np
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb
from gpflow_bsvm.datasets import load
from gpflow_bsvm.likelihoods import CrammerSinger

CLASSES = (3, 10, 100)
DEVIATIONS = np.geomspace(0.05, 3, 25)
SWEEPS = 25
BOUNDS = {"exact": "exact", "augmented": "augmented", "published": "wistuba2018"}


def run() -> list[dict]:
    return [*_gaps(), *_sweeps()]


def _gaps() -> Iterator[dict]:
    for num_classes in CLASSES:
        mean = np.zeros((len(DEVIATIONS), num_classes))
        mean[:, 0] = 1
        variance = np.repeat(DEVIATIONS[:, None] ** 2, num_classes, axis=1)
        Y = np.zeros((len(DEVIATIONS), 1))
        values = {
            bound: CrammerSinger(num_classes, bound=name).variational_expectations(
                Y, mean, variance, Y
            )
            for bound, name in BOUNDS.items()
        }
        for bound in ("augmented", "published"):
            gap = values[bound] - values["exact"]
            for deviation, value in zip(DEVIATIONS, gap.numpy()):
                yield _row("gap", f"{bound}, C = {num_classes}", deviation, value)


def _sweeps() -> Iterator[dict]:
    data = load("digits")
    X, Y = StandardScaler().fit_transform(data.X), data.y[:, None].astype(float)
    Z = gb.inducing_points.kmeans(X, 100)
    for bound, rho in (("published", 1.0), ("published", 0.5), ("exact", 1.0), ("exact", None)):
        kernel = gpflow.kernels.SquaredExponential(1.0, lengthscales=4.0)
        likelihood = CrammerSinger(10, bound=BOUNDS[bound])
        model = gb.models.BSVM(kernel, likelihood, Z.copy(), num_latent_gps=10)
        start = float(model.elbo((X, Y)))
        if rho is None:
            cavi = gb.inference.CAVI(max_iter=SWEEPS, tol=0)
            objective, name = cavi.run(model, (X, Y), progress=False).elbo, "exact, CAVI"
        else:
            objective, name = _constant(model, (X, Y), rho), f"{bound}, rho = {rho:g}"
        for sweep, value in enumerate([start, *objective]):
            yield _row("sweep", name, sweep, value)


def _constant(model: gb.models.BSVM, data: tuple, rho: float) -> list[float]:
    objective = []
    for _ in range(SWEEPS):
        model.natgrad_step(data, rho)
        objective.append(float(model.elbo(data)))
    return objective


def _row(kind: str, curve: str, x: float, y: float) -> dict:
    return {"kind": kind, "curve": curve, "x": x, "y": y}
