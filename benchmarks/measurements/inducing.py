"""Wenzel et al. (2017), Fig. 3: error and training time against the number of inducing points.

USPS digits 3 and 5 (1540 rows, 256 pixels), 10 folds, four selections: a random subset, k-means
(both the paper's), AFK-MC2 seeds, and greedy conditional variance under the starting kernel.
A row is a fold. Two protocols, the same for all selections, with an isotropic squared exponential:

    fixed      the starting kernel: variance 4, lengthscale 16 = sqrt(D)
    learned    `VEM` learns variance and lengthscale at these very points, for some M

`seconds` is selection plus fit, without tracing, in seconds of the process's CPU: on one core,
other work on the machine does not count. `time_ratio` is that over the time of 512 k-means points
under the fixed kernel, in the same fold. Pixels are centred and divided by one number for all: some
are constant but for a handful of digits, and a scale for each would make outliers of those (61
deviations).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import gpflow
import numpy as np

import gpflow_bsvm as gb
from gpflow_bsvm import inducing_points
from gpflow_bsvm.papers import wenzel2017

from ._common import numbered, scores, ten_folds, usual_kernel

DATA = "usps_3vs5"
NUM_INDUCING = (4, 8, 16, 32, 64, 128, 256, 512)
#: Where the kernel is learned too: the cost grows as the square of M.
LEARNED = (4, 16, 64, 128)


def run() -> Iterator[dict]:
    X, y = numbered(DATA)
    for fold, (train, test) in ten_folds(X, y):
        parts = *scaled(X[train], X[test]), y[train, None].astype(float), y[test]
        if fold == 0:
            _trace(parts)
        yield from _relative([{"fold": fold, **row} for row in _fits(parts, fold)])


def scaled(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    centre = X.mean(axis=0)
    scale = np.sqrt(X.var(axis=0).mean())
    return (X - centre) / scale, (X_test - centre) / scale


def _greedy(X: np.ndarray, num_inducing: int, *, seed: int) -> np.ndarray:
    kernel = usual_kernel(X.shape[1])
    return inducing_points.greedy_variance(X, num_inducing, kernel, tol=0, seed=seed)


SELECTIONS: dict[str, Callable[..., np.ndarray]] = {
    "random": inducing_points.random_subset,
    "k-means": inducing_points.kmeans,
    "AFK-MC2": wenzel2017.afkmc2,
    "greedy variance": _greedy,
}


def _trace(parts: tuple) -> None:
    """There is one graph for every number of inducing points."""
    for num_inducing in NUM_INDUCING:
        Z = inducing_points.random_subset(parts[0], num_inducing)
        for kernel in _kernels(num_inducing):
            _fit(parts, Z, kernel)


def _kernels(num_inducing: int) -> tuple[str, ...]:
    return ("fixed", "learned") if num_inducing in LEARNED else ("fixed",)


def _fits(parts: tuple, fold: int) -> Iterator[dict]:
    for num_inducing in NUM_INDUCING:
        for selection, select in SELECTIONS.items():
            start = time.process_time()
            Z = select(parts[0], num_inducing, seed=fold)
            selected = time.process_time() - start
            for kernel in _kernels(num_inducing):
                found = _fit(parts, Z, kernel)
                total = selected + found["fit_seconds"]
                about = {"selection": selection, "num_inducing": num_inducing, "kernel": kernel}
                yield {**about, **found, "selection_seconds": selected, "seconds": total}


def _fit(parts: tuple, Z: np.ndarray, kernel: str) -> dict:
    X, X_test, Y, y_test = parts
    model = gb.models.BSVM(
        usual_kernel(X.shape[1]), gb.likelihoods.Hinge(bound="augmented"), Z.copy(), num_data=len(X)
    )
    gpflow.set_trainable(model.inducing_variable, False)
    algorithm = gb.inference.VEM(tol=1e-3).run if kernel == "learned" else gb.fit
    start = time.process_time()
    history = algorithm(model, (X, Y), progress=False)
    seconds = time.process_time() - start
    return {
        **scores(model, X_test, y_test),
        "elbo": history.elbo[-1],
        "lengthscale": float(model.kernel.lengthscales.numpy()),
        "variance": float(model.kernel.variance.numpy()),
        "fit_seconds": seconds,
    }


def _relative(rows: list[dict]) -> list[dict]:
    """:return: the rows of a fold, with their time in units of that of the largest k-means."""
    (unit,) = (
        row["seconds"]
        for row in rows
        if (row["selection"], row["num_inducing"]) == ("k-means", NUM_INDUCING[-1])
    )
    return [{**row, "time_ratio": row["seconds"] / unit} for row in rows]
