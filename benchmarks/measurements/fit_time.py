"""Seconds of a whole fit, kernel and penalty included, beside its peers in the same run.

Nine tenths of the rows of each set of `quality`, with the models of that measurement: SVGP learns
its kernel, the SVC has a grid and Platt's sigmoid. And `make_classification` with 20 inputs, 10 of
them informative, beside an SVC at its defaults with Platt's sigmoid (up to 10 000 rows) and
`HistGradientBoostingClassifier`. Each is fitted twice: the first fit of a kind traces its graphs,
which counts in `first`, and not in `again`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import SVC

from gpflow_bsvm import BSVMClassifier
from gpflow_bsvm.compare import Fold, KernelSettings, folds, make_baseline

from ._common import numbered
from .quality import BINARY, MULTICLASS, fitted_svcs

SIZES, SVC_ROWS = (1_000, 10_000, 100_000), 10_000


def run() -> Iterator[dict]:
    warnings.simplefilter("ignore")
    for name in (*BINARY, *MULTICLASS):
        X, y = numbered(name)
        kept = np.bincount(y)[y] >= 10
        X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
        fold = next(iter(folds(X, y, 10)))
        yield from _timed(name, fold.X, fold.y, _peers(fold))
    for n in SIZES:
        X, y = make_classification(n, 20, n_informative=10, random_state=0)
        yield from _timed("make_classification", X, y, _plain(X, y))


def _timed(name: str, X: np.ndarray, y: np.ndarray, fits: dict[str, Callable]) -> Iterator[dict]:
    about = {"data": name, "classes": int(y.max()) + 1, "n": len(y)}
    fits = {"bsvm": lambda: BSVMClassifier(random_state=0).fit(X, y), **fits}
    for method, fit in fits.items():
        first, again = (_seconds(fit) for _ in range(2))
        row = {**about, "method": method, "first": first, "again": again}
        print(*row.values(), flush=True)
        yield row


def _seconds(fit: Callable) -> float:
    start = time.perf_counter()
    fit()
    return time.perf_counter() - start


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
