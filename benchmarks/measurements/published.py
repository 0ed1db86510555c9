"""What is wrong with the published multi-class objective: it is no bound, and it is no ascent.

Rows of kind "gap": objectives minus the exact expectation, for C classes of equal mean, the label's
1 above them, and equal standard deviation. Rows of kind "sweep": objectives on digits, M = 100. The
paper's Algorithm 1 takes one class after another, at local variables and rivals of the sweep's
start ("in turn"); a natural-gradient step takes all classes at once. Kernel of variance 1 and
lengthscale 4, and of variance 4 and lengthscale 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import gpflow
import numpy as np
from gpflow.config import default_jitter
from gpflow.covariances import Kuf, Kuu
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import CrammerSinger

from ._common import numbered

CLASSES = (3, 10, 100)
DEVIATIONS = np.geomspace(0.05, 3, 25)
SWEEPS = 25

#: Name in the rows -> of the bound.
BOUNDS = {"exact": "exact", "augmented": "augmented", "published": "wistuba2018"}


def run() -> list[dict]:
    return [*_gaps(), *_sweeps(1.0, 4.0), *_sweeps(4.0, 8.0)]


def _gaps() -> Iterator[dict]:
    for num_classes in CLASSES:
        mean = np.zeros((len(DEVIATIONS), num_classes))
        mean[:, 0] = 1
        variance = np.repeat(DEVIATIONS[:, None] ** 2, num_classes, axis=1)
        Y = np.zeros((len(DEVIATIONS), 1))
        values = {
            name: CrammerSinger(num_classes, bound=bound).variational_expectations(
                Y, mean, variance, Y
            )
            for name, bound in BOUNDS.items()
        }
        for bound in ("augmented", "published"):  # as the rows call them
            gap = values[bound] - values["exact"]
            for deviation, value in zip(DEVIATIONS, gap.numpy()):
                yield _row("gap", f"{bound}, C = {num_classes}", deviation, value)


def _sweeps(variance: float, lengthscale: float) -> Iterator[dict]:
    X, y = numbered("digits")
    data = StandardScaler().fit_transform(X), y[:, None].astype(float)
    Z = gb.inducing_points.kmeans(data[0], 100)
    at_once = [partial(gb.models.BSVM.natgrad_step, learning_rate=rho) for rho in (1.0, 0.5)]
    for bound, name, sweep in (
        ("published", "published, in turn (Algorithm 1)", _algorithm1),
        ("published", "published, all classes at once", at_once[0]),
        ("published", "published, at once, rho = 0.5", at_once[1]),
        ("exact", "exact, at once", at_once[0]),
        ("exact", "exact, CAVI", None),
    ):
        kernel = gpflow.kernels.SquaredExponential(variance, lengthscales=lengthscale)
        likelihood = CrammerSinger(10, bound=BOUNDS[bound])
        model = gb.models.BSVM(kernel, likelihood, Z.copy(), num_latent_gps=10)
        objective = [float(model.elbo(data))]
        if sweep is None:
            cavi = gb.inference.CAVI(max_steps=SWEEPS, tol=0)
            objective += cavi.run(model, data, progress=False).elbo
        else:
            for _ in range(SWEEPS):
                sweep(model, data)
                objective.append(float(model.elbo(data)))
        for number, value in enumerate(objective):
            yield _row(f"sweep {variance:g}, {lengthscale:g}", name, number, value)


def _algorithm1(model: gb.models.BSVM, data: tuple) -> None:
    """A sweep at rho = 1, whitened: q(v_j) = N(S_j Phi^T r, S_j), S_j = (I + Phi^T w Phi)^-1."""
    (X, Y), rows = data, np.arange(len(data[0]))
    y = Y[:, 0].astype(int)
    L = np.linalg.cholesky(Kuu(model.inducing_variable, model.kernel, jitter=default_jitter()))
    Phi = np.linalg.solve(L, Kuf(model.inducing_variable, model.kernel, X)).T
    mean, variance = (part.numpy() for part in model.predict_f(X))
    t = np.where(np.arange(10) == y[:, None], -np.inf, mean).argmax(axis=1)
    m = 1 + mean[rows, t] - mean[rows, y]
    w = 1 / np.sqrt(m**2 + variance[rows, y] + variance[rows, t])
    q_mu, q_sqrt = model.q_mu.numpy(), model.q_sqrt.numpy()
    for j in range(10):
        is_y, is_t = y == j, t == j
        r = is_y * (1 + w * (1 + mean[rows, t])) - is_t * (1 + w * (1 - mean[rows, y]))
        S = np.linalg.inv(np.eye(len(L)) + Phi.T * (w * (is_y | is_t)) @ Phi)
        q_mu[:, j], q_sqrt[j] = S @ Phi.T @ r, np.linalg.cholesky(S)
        mean[:, j] = Phi @ q_mu[:, j]
    model.q_mu.assign(q_mu)
    model.q_sqrt.assign(q_sqrt)


def _row(kind: str, curve: str, x: float, y: float) -> dict:
    return {"kind": kind, "curve": curve, "x": x, "y": y}
