"""What is wrong with the published multi-class objective: it is no bound, and it is no ascent.

Rows of kind "gap": objectives minus the exact expectation, for C classes of equal mean, the label's
1 above them, and equal standard deviation. Rows of kind "sweep": objectives on three quarters of
digits, M = 100, and of kind "error": held-out errors at the end, by the largest probability and by
the largest mean of f. The paper's Algorithm 1 takes one class after another, at local variables and
rivals of the start of a sweep ("in turn"); a natural-gradient step takes all at once. Kernel of
variance 1 and lengthscale 4, and of variance 4 and lengthscale 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import gpflow
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import CrammerSinger
from gpflow_bsvm.papers import wistuba2018

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
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X)
    data, X_test = (scaler.transform(X), y[:, None].astype(float)), scaler.transform(X_test)
    Z, kind = gb.inducing_points.kmeans(data[0], 100), f"{variance:g}, {lengthscale:g}"
    for bound, name, fit in FITS:
        kernel = gpflow.kernels.SquaredExponential(variance, lengthscales=lengthscale)
        likelihood = CrammerSinger(10, bound=BOUNDS[bound])
        model = gb.models.BSVM(kernel, likelihood, Z.copy(), num_latent_gps=10)
        start = float(model.elbo(data))
        for number, value in enumerate([start, *fit(model, data)]):
            yield _row(f"sweep {kind}", name, number, value)
        mean = gb.prediction.predict_marginals(model, X_test)[0]
        p = gb.prediction.predict_probabilities(model, X_test)
        for rule, scores in (("probability", p), ("mean", mean)):
            error = np.mean(scores.argmax(axis=1) != y_test)
            yield _row(f"error {kind}", f"{name}; {rule}", SWEEPS, error)


def _by(algorithm: type) -> Callable:
    def fit(model: gb.models.BSVM, data: tuple) -> list[float]:
        return algorithm(max_steps=SWEEPS, tol=0).run(model, data, progress=False).elbo

    return fit


def _at_once(rho: float) -> Callable:
    def fit(model: gb.models.BSVM, data: tuple) -> Iterator[float]:
        for _ in range(SWEEPS):
            model.natgrad_step(data, rho)
            yield float(model.elbo(data))

    return fit


#: Bound, name of the curve, and what leaves the objectives after every sweep.
FITS = (
    ("published", "published, in turn (Algorithm 1)", _by(wistuba2018.ClassByClass)),
    ("published", "published, all classes at once", _at_once(1.0)),
    ("published", "published, at once, rho = 0.5", _at_once(0.5)),
    ("exact", "exact, at once", _at_once(1.0)),
    ("exact", "exact, CAVI", _by(gb.inference.CAVI)),
)


def _row(kind: str, curve: str, x: float, y: float) -> dict:
    return {"kind": kind, "curve": curve, "x": x, "y": y}
