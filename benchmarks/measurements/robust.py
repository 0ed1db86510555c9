"""Failures of `VEM` in 500 fits: every small data set at hand, six kernels, good and bad starts.

All sets of the data directory with at most 10 000 rows, binary (`Hinge`) and of several classes
(`CrammerSinger`). 125 draws of set, kernel and bound, every set twice or more; and of each draw
four fits, that share their graphs: other rows (400 at most, standardised), a start (lengthscales
sqrt(D), or 100 times less or more), default priors or none, and one of the four learns Z as well.

A failure is an exception, a bound, parameter or prediction that is not finite, or a bound that
falls from one record to the next, or differs from the model's own ELBO at the end, by more than
1e-9 of itself. One row per fit.
"""

from __future__ import annotations

import os
import time
from itertools import product
from pathlib import Path

import gpflow
import numpy as np
from gpflow.kernels import Kernel

import gpflow_bsvm as gb
from gpflow_bsvm.datasets import DATA_VARIABLE, load
from gpflow_bsvm.prediction import predict_probabilities

from ._common import numbered

NUM_FITS, FITS_PER_DRAW = 500, 4
MOST_ROWS, NUM_ROWS, NUM_INDUCING, ROUNDS = 10_000, 400, 30, 8
TOLERANCE = 1e-9
STARTS = {"sqrt(D)": 1.0, "100 times less": 0.01, "100 times more": 100.0}
KERNELS = ("SE, ARD", "Matern 3/2", "rational quadratic", "SE + linear", "SE + white", "M 5/2 * SE")
BOUNDS = ("exact", "augmented")


def run() -> list[dict]:
    sets = _small_sets()
    rows = []
    for name, fits in _draws(sets).items():
        X, y = numbered(name)
        rows += [{"data": name, **fit, **_fit(X, y, fit)} for fit in fits]
    return rows


def _small_sets() -> list[str]:
    folder = Path(os.environ[DATA_VARIABLE])
    paths = sorted([*folder.glob("binary/*.csv.gz"), *folder.glob("multiclass/*.csv.gz")])
    names = [f"{path.parent.name}/{path.name.removesuffix('.csv.gz')}" for path in paths]
    return [name for name in names if len(load(name).y) <= MOST_ROWS]


def _draws(sets: list[str]) -> dict[str, list[dict]]:
    """:return: for each set, its fits."""
    random = np.random.default_rng(0)
    draws: dict[str, list[dict]] = {name: [] for name in sets}
    structures = list(product(KERNELS, BOUNDS))
    for number, drawn in enumerate(random.permutation(NUM_FITS // FITS_PER_DRAW)):
        kernel, bound = structures[drawn % len(structures)]  # as many of each
        with_inducing = random.integers(FITS_PER_DRAW)
        draws[sets[number % len(sets)]] += [
            {
                "kernel": kernel,
                "bound": bound,
                "start": str(random.choice(list(STARTS))),
                "priors": bool(random.integers(2)),
                "learns_Z": bool(fit == with_inducing),
                "seed": FITS_PER_DRAW * number + fit,
            }
            for fit in range(FITS_PER_DRAW)
        ]
    return draws


def _split(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """:return: X and y of the training rows, every class among them, and of as many others."""
    order = np.random.default_rng(seed).permutation(len(y))
    _, first = np.unique(y[order], return_index=True)
    order = np.concatenate([order[first], np.delete(order, first)])
    num_rows = min(NUM_ROWS, len(y) // 2)
    train, test = order[:num_rows], order[num_rows : 2 * num_rows]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1)
    return X[train], y[train], X[test], y[test]


def _kernel(name: str, num_features: int, scale: float) -> Kernel:
    kernels = gpflow.kernels
    length = scale * np.sqrt(num_features)
    if name == "SE, ARD":
        return kernels.SquaredExponential(4.0, lengthscales=np.full(num_features, length))
    if name == "Matern 3/2":
        return kernels.Matern32(4.0, lengthscales=length)
    if name == "rational quadratic":
        return kernels.RationalQuadratic(4.0, lengthscales=length)
    if name == "M 5/2 * SE":
        other = kernels.SquaredExponential(1.0, lengthscales=length)
        return kernels.Matern52(4.0, lengthscales=length) * other
    other = kernels.Linear(1.0) if name == "SE + linear" else kernels.White(0.1)
    return kernels.SquaredExponential(4.0, lengthscales=length) + other


def _model(X: np.ndarray, num_classes: int, fit: dict) -> gb.models.BSVM:
    kernel = _kernel(fit["kernel"], X.shape[1], STARTS[fit["start"]])
    if fit["priors"]:
        gb.priors.set_default_priors(kernel, X.shape[1])
    if num_classes == 2:
        likelihood = gb.likelihoods.Hinge(bound=fit["bound"])
    else:
        likelihood = gb.likelihoods.CrammerSinger(num_classes, bound=fit["bound"])
    model = gb.models.BSVM(
        kernel,
        likelihood,
        gb.inducing_points.kmeans(X, NUM_INDUCING),
        num_latent_gps=likelihood.latent_dim or 1,
        num_data=len(X),
    )
    gpflow.set_trainable(model.inducing_variable, fit["learns_Z"])
    return model


def _fit(X: np.ndarray, y: np.ndarray, fit: dict) -> dict:
    num_classes = int(y.max()) + 1
    X, y, X_test, y_test = _split(X, y, fit["seed"])
    data = X, y[:, None].astype(float)
    row = {"rows": len(X), "inputs": X.shape[1], "classes": num_classes}
    start = time.perf_counter()
    try:
        model = _model(X, num_classes, fit)
        history = gb.inference.VEM(max_steps=ROUNDS).run(model, data, progress=False)
        p = predict_probabilities(model, X_test)
        elbo = float(model.elbo(data) + model.log_prior_density())
    except Exception as error:
        return {**row, "failure": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    chosen = p.argmax(axis=1) if p.shape[1] > 1 else p[:, 0] > 0.5
    return {
        **row,
        "seconds": time.perf_counter() - start,
        "rounds": len(history),
        "converged": history.converged,
        "first": history.elbo[0],
        "last": history.elbo[-1],
        "largest_relative_fall": _largest_fall(history.elbo),
        "error": float(np.mean(chosen != y_test)),
        "error_of_majority": float(np.mean(np.bincount(y).argmax() != y_test)),
        "failure": _verdict(model, history, elbo, p),
    }


def _largest_fall(bounds: list[float]) -> float:
    bounds = np.asarray(bounds)
    return float(np.max((bounds[:-1] - bounds[1:]) / np.abs(bounds[1:]), initial=0.0))


def _verdict(
    model: gb.models.BSVM, history: gb.inference.History, elbo: float, p: np.ndarray
) -> str:
    """:return: what is wrong, nothing if all is well."""
    if not np.isfinite(history.elbo).all():
        return "bound not finite"
    parameters = gpflow.utilities.read_values(model).values()
    if not all(np.isfinite(value).all() for value in parameters):
        return "parameter not finite"
    if not np.isfinite(p).all():
        return "prediction not finite"
    if _largest_fall(history.elbo) > TOLERANCE:
        return "bound fell"
    other = abs(elbo - history.elbo[-1]) > TOLERANCE * abs(elbo)
    return f"bound is {history.elbo[-1]}, the model's {elbo}" if other else ""
