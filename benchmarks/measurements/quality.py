"""Predictive quality, 10 folds: what learns everything from the training rows against its peers.

All see the same standardised rows. `BSVMClassifier()` as it is, with as many inducing points as it
wants; GPflow's SVGP with Bernoulli or Softmax, an ARD squared exponential as users write it, 100
inducing points from k-means, natural gradients and Adam on the kernel in turn until it has
converged ("svgp, offset" has the constant of our default kernel, too, "bsvm, no offset" is ours
as it was before it had one); scikit-learn's SVC with C and gamma by grid search (by successive
halving where rows are many), its decision values calibrated by Platt's sigmoid or by a temperature,
both on cross-validated ones. Classes with fewer than 10 rows are left out.

    python run.py quality        folds that are missing, and the means of all

Folds are kept as they come in results/quality, see `store.Kept`. Delete the rows of a method to
measure it again (of both SVCs, which share a search).
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, StratifiedKFold
from sklearn.svm import SVC
from store import RESULTS, Kept

from gpflow_bsvm import BSVMClassifier, metrics
from gpflow_bsvm.compare.baselines import KernelSettings
from gpflow_bsvm.compare.gp_baselines import SVGPBaseline, make_baseline
from gpflow_bsvm.compare.protocol import Fold, folds
from gpflow_bsvm.likelihoods import Probit

from ._common import numbered

FOLDER = RESULTS / "quality"
BINARY = (
    *("crabs", "heart", "sonar", "flare", "breast_cancer", "cancer", "diabetis", "pima", "german"),
    *("usps_3vs5", "splice", "banana", "phoneme", "waveform", "spambase", "ringnorm", "twonorm"),
)
MULTICLASS = (
    *("iris", "auto", "lymphography", "flags", "glass", "balance-scale", "cars", "cleveland"),
    *("schizo", "solar-flare_1", "analcatdata_authorship", "analcatdata_dmft", "vowel", "yeast"),
    *("car", "mfeat-morphological"),
)
#: Where SVGP has another kernel, too: sets of at most 1000 rows, and ringnorm.
WITH_OFFSET = (*BINARY[:9], "ringnorm")
#: More rows than these are searched by successive halving.
GRID_ROWS = 2000
SCORES = ["error", "nll", "brier"]
SVCS = {"svc, platt": "sigmoid", "svc, temperature": "temperature"}
UNFLOORED, OFFSET = "svgp, no floor", "svgp, offset"
#: Sets of methods that are not measured on all.
ONLY = {UNFLOORED: BINARY, OFFSET: WITH_OFFSET}
#: Variance from which the constant is learned.
CONSTANT = 4.0
#: Those that are measured together.
METHODS = (("bsvm",), ("svgp",), (UNFLOORED,), (OFFSET,), tuple(SVCS))
#: Measured before the default kernel had an offset.
BEFORE = "bsvm, no offset"
GRID_C, GRID_GAMMA = (0.1, 1.0, 10.0, 100.0), (0.1, 0.3, 1.0, 3.0)


def run() -> list[dict]:
    kept = Kept("quality")
    for name in (*BINARY, *MULTICLASS):
        for methods in METHODS:
            if name in ONLY.get(methods[0], (name,)):
                key = {"data": name, "method": methods[0]}
                kept.complete(name, key, lambda n=name, m=methods: fits(n, m).to_dict("records"))
    order = [*itertools.chain(*METHODS), BEFORE]
    rows = pd.DataFrame(kept.rows("data"))
    rows = rows.assign(order=rows["method"].map(order.index)).sort_values(["data", "order"])
    sets = rows.groupby(["data", "classes", "n", "method"], sort=False)
    return sets[[*SCORES, "ece", "seconds"]].mean().reset_index().to_dict("records")


def fits(
    name: str, methods: Sequence[str], num_folds: int = 10, first: int | None = None
) -> pd.DataFrame:
    """
    :param first: so many of the folds; None: all.
    :return: a row for each fold and method.
    """
    X, y = numbered(name)
    kept = np.bincount(y)[y] >= num_folds
    X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    rows, pooled = [], {}
    for method, fold, seconds, p in _fits(X, y, methods, num_folds, first):
        pooled.setdefault(method, np.empty((len(y), int(y.max()) + 1)))[fold.test] = p
        scores = metrics.evaluate(fold.y_test, p)
        about = {"data": name, "classes": int(y.max()) + 1, "n": len(y), "fold": fold.number}
        scores = {score: scores[score] for score in SCORES}
        rows.append({**about, "method": method, "seconds": seconds, **scores})
    if first is not None:
        return pd.DataFrame(rows)
    # Bins of a fold would hold a few rows each: this one is of all folds together.
    ece = {method: metrics.evaluate(y, p)["ece"] for method, p in pooled.items()}
    return pd.DataFrame(rows).assign(ece=lambda rows: rows["method"].map(ece))


def _fits(
    X: np.ndarray, y: np.ndarray, methods: Sequence[str], num_folds: int, first: int | None
) -> Iterator[tuple]:
    """Yield method, fold, training seconds, and p of the test rows."""
    warnings.simplefilter("ignore")
    wanted = {
        "svgp": lambda: make_baseline("svgp", int(y.max()) + 1),
        UNFLOORED: lambda: SVGPBaseline(Probit),
        OFFSET: lambda: make_baseline("svgp", 2),
        "bsvm": Default,
    }
    models = {name: make() for name, make in wanted.items() if name in methods}
    plain = KernelSettings(np.sqrt(X.shape[1]), 4.0, learn=True)
    for fold in itertools.islice(folds(X, y, num_folds), first):
        for method, model in models.items():
            kernel = replace(plain, offset=CONSTANT) if method == OFFSET else plain
            start = time.perf_counter()
            model.fit(fold.X, fold.y, fold.Z, kernel, fold.number)
            yield method, fold, time.perf_counter() - start, model.predict_proba(fold.X_test)
        start = time.perf_counter()
        for method, calibrated in fitted_svcs(fold) if set(SVCS) & set(methods) else ():
            yield method, fold, time.perf_counter() - start, calibrated.predict_proba(fold.X_test)


class Default:
    """`BSVMClassifier()` as it is, its own M included."""

    def fit(self, X: np.ndarray, y: np.ndarray, Z: object, kernel: object, seed: int) -> None:
        self._model = BSVMClassifier(random_state=seed).fit(X, y)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self._model.predict_proba(X)


def fitted_svcs(fold: Fold) -> Iterator[tuple[str, CalibratedClassifierCV]]:
    """One search for both calibrations, and one that takes many rows: not compare's `svc`."""
    grid = {"C": GRID_C, "gamma": [factor / fold.X.shape[1] for factor in GRID_GAMMA]}
    three, five = (StratifiedKFold(k, shuffle=True, random_state=fold.number) for k in (3, 5))
    svc = SVC(cache_size=500)
    if len(fold.X) > GRID_ROWS:  # rows double where settings halve
        halving = {"factor": 2, "min_resources": 1000, "random_state": fold.number}
        search = HalvingGridSearchCV(svc, grid, cv=three, refit=False, **halving)
    else:
        search = GridSearchCV(svc, grid, cv=three, refit=False)
    best = svc.set_params(**search.fit(fold.X, fold.y).best_params_)
    for name, method in SVCS.items():
        model = CalibratedClassifierCV(best, method=method, cv=five, ensemble=False)
        yield name, model.fit(fold.X, fold.y)
