"""Processor seconds of a whole fit, kernel and penalty included, beside its peers in the same run.

Nine tenths of the rows of each set of `quality`, with the models of that measurement: SVGP learns
its kernel, the SVC has a grid and Platt's sigmoid. And `make_classification` with 20 inputs, 10 of
them informative, beside an SVC at its defaults with Platt's sigmoid (up to 10 000 rows) and
`HistGradientBoostingClassifier`. Each is fitted twice: the first fit of a kind traces its graphs,
which counts in `first`, and not in `again`. All have one thread: what else the machine does does
not count.

Fits are kept as they come in results/fit_time, see `store.Kept`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import SVC
from store import Kept
from threadpoolctl import threadpool_limits

from gpflow_bsvm import BSVMClassifier
from gpflow_bsvm.compare.baselines import KernelSettings
from gpflow_bsvm.compare.gp_baselines import make_baseline
from gpflow_bsvm.compare.protocol import Fold, folds

from ._common import numbered
from .quality import BINARY, MULTICLASS, fitted_svcs

SIZES, SVC_ROWS = (1_000, 10_000, 100_000), 10_000


def run() -> list[dict]:
    warnings.simplefilter("ignore")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    kept = Kept("fit_time")
    with threadpool_limits(1):
        for name in (*BINARY, *MULTICLASS):
            kept.complete("sets", {"data": name}, lambda name=name: _of_set(name))
        for n in SIZES:
            key = {"data": "make_classification", "n": n}
            kept.complete("made", key, lambda n=n: _of_made(n))
    return kept.rows("classes", "n", "data")


def _of_set(name: str) -> list[dict]:
    X, y = numbered(name)
    rare = np.bincount(y)[y] < 10
    X, y = X[~rare], np.unique(y[~rare], return_inverse=True)[1]
    fold = next(iter(folds(X, y, 10)))
    return _timed(fold.X, fold.y, _peers(fold))


def _of_made(n: int) -> list[dict]:
    X, y = make_classification(n, 20, n_informative=10, random_state=0)
    return _timed(X, y, _plain(X, y))


def _timed(X: np.ndarray, y: np.ndarray, fits: dict[str, Callable]) -> list[dict]:
    fits = {"bsvm": lambda: BSVMClassifier(random_state=0).fit(X, y), **fits}
    times = {method: [_seconds(fit) for _ in range(2)] for method, fit in fits.items()}
    about = {"classes": int(y.max()) + 1, "n": len(y)}
    return [
        {**about, "method": method, "first": first, "again": again, "seconds": first + again}
        for method, (first, again) in times.items()
    ]


def _seconds(fit: Callable) -> float:
    start = time.process_time()
    fit()
    return time.process_time() - start


def _peers(fold: Fold) -> dict[str, Callable]:
    svgp = make_baseline("svgp", int(fold.y.max()) + 1)
    kernel = KernelSettings(np.sqrt(fold.X.shape[1]), 4.0, learn=True)
    return {
        "svgp": lambda: svgp.fit(fold.X, fold.y, fold.Z, kernel, 0),
        "svc, platt": lambda: next(fitted_svcs(fold)),
    }


def _plain(X: np.ndarray, y: np.ndarray) -> dict[str, Callable]:
    svc = CalibratedClassifierCV(SVC(), method="sigmoid", cv=5, ensemble=False)
    boosting = HistGradientBoostingClassifier(early_stopping=True, random_state=0)
    fits = {"boosting": lambda: boosting.fit(X, y)}
    return {"svc, no grid": lambda: svc.fit(X, y), **fits} if len(X) <= SVC_ROWS else fits
