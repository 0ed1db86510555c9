"""Wenzel et al. (2017), Fig. 2: the lengthscale that `VEM` learns against a grid of lengthscales.

The kernel is an isotropic squared exponential. Each of 50 lengthscales is held fixed, fitted by
`fit`, and judged by 10-fold cross-validation (error and NLL, mean and standard error); `VEM` learns
one from the training part of each fold alone. The variance is 1 in the setting "fixed". In the
setting "learned", `VEM` learns it too, and the grid is laid at the median of what it learned. At
most 100 inducing points (k-means); inputs are standardised on the training folds. Lengthscales are
GPflow's: the paper's theta is sqrt(2) times as large.

`grid_over_learning` is the time of the whole grid search (50 x 10 fits) over that of one `VEM`
run, median over folds; no tracing in either. Seconds are those of the process's CPU: on one core,
other work on the machine does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import gpflow
import numpy as np
import pandas as pd

import gpflow_bsvm as gb
from gpflow_bsvm.compare import Fold, folds

from ._common import reset, scores, standardised

#: Data, and how many rows of it.
SETS = {"waveform": 1500, "diabetis": 768, "heart": 270}
BOUNDS = ("exact", "augmented")
GRID = np.geomspace(0.3, 100, 50)
NUM_INDUCING = 100


def run() -> Iterator[dict]:
    for name, num_rows in SETS.items():
        X, Y = (part[:num_rows] for part in standardised(name))
        parts = list(folds(X, Y[:, 0].astype(int), num_inducing=NUM_INDUCING))
        for bound in BOUNDS:
            for setting in ("fixed", "learned"):
                for row in _compare(parts, bound, setting == "learned"):
                    yield {"data": name, "bound": bound, "setting": setting, **row}


def _compare(folds: list[Fold], bound: str, learn_variance: bool) -> list[dict]:
    _learn(folds[0], bound, learn_variance), next(_grid(folds[0], bound, 1.0))  # traces
    learned = pd.DataFrame([_learn(fold, bound, learn_variance) for fold in folds])
    variance = learned["variance"].median()
    fits = pd.DataFrame([row for fold in folds for row in _grid(fold, bound, variance)])
    ratio = fits["seconds"].sum() / learned["seconds"].median()
    return [
        *(_row("grid", group) for _, group in fits.groupby("lengthscale")),
        {**_row("VEM", learned), "grid_over_learning": ratio},
    ]


def _row(kind: str, fits: pd.DataFrame) -> dict:
    """:return: what ten fits have in common; `elbo` is a mean, `seconds` a sum."""
    row = {
        "kind": kind,
        "lengthscale": fits["lengthscale"].median(),
        "lengthscale_min": fits["lengthscale"].min(),
        "lengthscale_max": fits["lengthscale"].max(),
        "variance": fits["variance"].median(),
        "elbo": fits["elbo"].mean(),
        "seconds": fits["seconds"].sum(),
    }
    for score in ("error", "nll"):
        row[score] = fits[score].mean()
        row[f"{score}_se"] = fits[score].std() / np.sqrt(len(fits))
    return row


def _grid(fold: Fold, bound: str, variance: float) -> Iterator[dict]:
    model = _model(fold, bound, variance, 1.0)
    for lengthscale in GRID:
        model.kernel.lengthscales.assign(lengthscale)
        reset(model)
        yield {**_fit(model, fold, gb.fit), "lengthscale": lengthscale}


def _learn(fold: Fold, bound: str, learn_variance: bool) -> dict:
    model = _model(fold, bound, 1.0, np.sqrt(fold.X.shape[1]))
    gpflow.set_trainable(model.kernel.variance, learn_variance)
    return _fit(model, fold, gb.inference.VEM().run)


def _model(fold: Fold, bound: str, variance: float, lengthscale: float) -> gb.models.BSVM:
    kernel = gpflow.kernels.SquaredExponential(variance, lengthscales=lengthscale)
    hinge = gb.likelihoods.Hinge(bound=bound)
    model = gb.models.BSVM(kernel, hinge, fold.Z.copy(), num_data=len(fold.X))
    gpflow.set_trainable(model.inducing_variable, False)
    return model


def _fit(model: gb.models.BSVM, fold: Fold, algorithm: Callable) -> dict:
    start = time.process_time()
    history = algorithm(model, (fold.X, fold.y[:, None].astype(float)), progress=False)
    seconds = time.process_time() - start
    return {
        "lengthscale": float(model.kernel.lengthscales.numpy()),
        "variance": float(model.kernel.variance.numpy()),
        "elbo": history.elbo[-1],
        "seconds": seconds,
        **scores(model, fold.X_test, fold.y_test),
    }
