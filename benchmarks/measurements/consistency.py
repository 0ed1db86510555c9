"""Estimated against known probabilities, as rows grow.

x is standard normal. The log odds of two classes (of four: logits, of which softmax makes
probabilities) are sums of sines of the first two inputs; with five inputs the other three are
noise. All learn from N rows and say p on 5000 others, whose probabilities are known; a row is the
root mean square error of p over rows and classes, a median over seeds.

`bsvm` is `BSVMClassifier()` as it is, `bsvm, stationary` the same fit with that link of levels,
`hinge` one with `loss="hinge"`, `svgp` GPflow's with
100 inducing points, its kernel learned; `svc` has C and gamma from a grid of 3 folds on 1000 rows
at most, probabilities by Platt's sigmoid or isotonic regression on 5 folds, and stops at 8000 rows;
`boosting` is `HistGradientBoostingClassifier` with early stopping.

Fits are kept as they come in results/consistency, see `store.Kept`.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from store import Kept

from gpflow_bsvm import BSVMClassifier
from gpflow_bsvm.compare.baselines import KernelSettings
from gpflow_bsvm.compare.gp_baselines import make_baseline
from gpflow_bsvm.inducing_points import kmeans

SIZES, SVC_ROWS, GRID_ROWS = (500, 2000, 8000, 32_000), 8000, 1000
#: Few rows are looked at more often.
SEEDS = {500: 2}
SETTINGS = [(inputs, classes) for inputs in (2, 5) for classes in (2, 4)]
GRID = {"C": (0.1, 1.0, 10.0, 100.0), "gamma": (0.1, 0.3, 1.0, 3.0)}


def run() -> list[dict]:
    warnings.simplefilter("ignore")
    kept = Kept("consistency")
    for n, (inputs, classes), method in itertools.product(SIZES, SETTINGS, METHODS):
        if n > SVC_ROWS and method.startswith("svc"):
            continue
        for seed in range(SEEDS.get(n, 1)):
            key = {"inputs": inputs, "classes": classes, "n": n, "method": method, "seed": seed}
            kept.complete(f"{inputs}_{classes}", key, lambda k=key: [{"rmse": _error(**k)}])
    keys = ["inputs", "classes", "n", "method"]
    rows = pd.DataFrame(kept.rows("inputs", "classes", "n"))
    means = rows.groupby(keys, sort=False)["rmse"].median().reset_index()
    means["order"] = means["method"].map(list(METHODS).index)
    order = [*keys[:3], "order"]
    return means.sort_values(order).drop(columns="order").to_dict("records")


def truth(X: np.ndarray, classes: int) -> np.ndarray:
    """:return: [N, C]."""
    a, b = X[:, 0], X[:, 1]
    waves = [np.sin(2 * a) + a * np.cos(1.5 * b), np.sin(2 * b), np.cos(2 * a + b), 0 * a]
    logits = [2 * waves[0], 0 * a] if classes == 2 else [2 * wave for wave in waves]
    return softmax(np.stack(logits, axis=1), axis=1)


def _error(inputs: int, classes: int, n: int, method: str, seed: int) -> float:
    rng = np.random.default_rng([seed, n, inputs, classes])
    X, X_test = rng.normal(size=(n, inputs)), rng.normal(size=(5000, inputs))
    y = (rng.random((n, 1)) > truth(X, classes).cumsum(axis=1)).sum(axis=1)
    p = METHODS[method](X, y, seed)(X_test)
    return float(np.sqrt(np.mean((p - truth(X_test, classes)) ** 2)))


def _svgp(X: np.ndarray, y: np.ndarray, seed: int) -> Callable:
    model = make_baseline("svgp", int(y.max()) + 1)
    kernel = KernelSettings(np.sqrt(X.shape[1]), 4.0, learn=True)
    model.fit(X, y, kmeans(X, 100, seed=seed), kernel, seed)
    return model.predict_proba


def _svc(method: str) -> Callable:
    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> Callable:
        search = GridSearchCV(SVC(), GRID, cv=3, refit=False).fit(X[:GRID_ROWS], y[:GRID_ROWS])
        svc = SVC(**search.best_params_)
        model = CalibratedClassifierCV(svc, method=method, cv=5, ensemble=False)
        return model.fit(X, y).predict_proba

    return fit


def _boosting(X: np.ndarray, y: np.ndarray, seed: int) -> Callable:
    model = HistGradientBoostingClassifier(early_stopping=True, random_state=seed)
    return model.fit(X, y).predict_proba


def _stationary(X: np.ndarray, y: np.ndarray, seed: int) -> Callable:
    model = BSVMClassifier(random_state=seed).fit(X, y)
    if model.loss_ == "levels":
        model.model_.likelihood.link = "stationary"
        model.model_.likelihood.scale.assign(1.0)  # a temperature is of the other link
    return model.predict_proba


METHODS: dict[str, Callable] = {
    "bsvm": lambda X, y, seed: BSVMClassifier(random_state=seed).fit(X, y).predict_proba,
    "bsvm, stationary": _stationary,
    "hinge": lambda X, y, seed: (
        BSVMClassifier(loss="hinge", random_state=seed).fit(X, y).predict_proba
    ),
    "svgp": _svgp,
    "svc, platt": _svc("sigmoid"),
    "svc, isotonic": _svc("isotonic"),
    "boosting": _boosting,
}
