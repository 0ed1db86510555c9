"""How far confidences are from accuracies, and how far they would be if calibration were perfect.

The held-out probabilities of the ten folds of `quality` are pooled. ECE has a floor: its value if
labels were drawn from the probabilities themselves. It is smaller for a method that gives similar
probabilities to all rows. Sets of at most 1000 rows, where this floor matters.

Twins are rows whose inputs are also those of a training row: a method may know them by heart.

    python run.py calibration       sets that are missing
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from store import Kept

from gpflow_bsvm import metrics
from gpflow_bsvm.compare.protocol import folds

from ._common import numbered
from .quality import BINARY, MULTICLASS, SVCS, _fits

MOST_ROWS, FOLDS, DRAWS = 1000, 10, 50


def run() -> list[dict]:
    kept = Kept("calibration")
    for name in (*BINARY, *MULTICLASS):
        if len(numbered(name)[1]) <= MOST_ROWS:
            kept.complete("sets", {"data": name}, partial(_of_set, name))
    return kept.rows("data", "method")


def _of_set(name: str) -> list[dict]:
    X, y = numbered(name)
    common = np.bincount(y)[y] >= FOLDS
    X, y = X[common], np.unique(y[common], return_inverse=True)[1]
    pooled: dict = {}
    for method, fold, _, p in _fits(X, y, ("bsvm", *SVCS), FOLDS, None):
        pooled.setdefault(method, np.empty((len(y), int(y.max()) + 1)))[fold.test] = p
    twins = _twins(X, y)
    return [
        {"method": method, **about(y, P), **_without(twins, y, P)} for method, P in pooled.items()
    ]


def _twins(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """:return: [N], True for rows that are also in the training rows of their fold."""
    group = np.unique(X, axis=0, return_inverse=True)[1].reshape(-1)
    found = np.zeros(len(y), bool)
    for fold in folds(X, y, FOLDS):
        test = np.isin(np.arange(len(y)), fold.test)
        found[test] = np.isin(group[test], group[~test])
    return found


def _without(twins: np.ndarray, y: np.ndarray, P: np.ndarray) -> dict[str, float]:
    y, P = y[~twins], P[~twins]
    scores = metrics.evaluate(y, P)
    others = {"error of others": scores["error"], "nll of others": scores["nll"]}
    return {"twins": float(twins.mean()), **others}


def about(y: np.ndarray, P: np.ndarray) -> dict[str, float]:
    """:return: the gap, ECE, its floor, and the temperature that fits these labels best."""
    drawn = np.random.default_rng(0).random((DRAWS, len(y), 1))
    labels = (np.cumsum(P, axis=1) < drawn).sum(axis=2).clip(max=P.shape[1] - 1)
    log_p = np.log(P.clip(1e-12))
    at = partial(_nll, y, log_p)
    best = minimize_scalar(lambda t: at(np.exp(t)), bounds=(-1.5, 1.5), method="bounded")
    return {
        "classes": P.shape[1],
        "n": len(y),
        "gap": float(P.max(axis=1).mean() - (P.argmax(axis=1) == y).mean()),
        "ece": metrics.evaluate(y, P)["ece"],
        "floor": float(np.mean([metrics.evaluate(row, P)["ece"] for row in labels])),
        "temperature": float(np.exp(-best.x)),
        "error": float((P.argmax(axis=1) != y).mean()),
        "nll": at(1.0),
        "nll, best temperature": float(best.fun),
    }


def _nll(y: np.ndarray, log_p: np.ndarray, factor: float) -> float:
    return float(-log_softmax(factor * log_p, axis=1)[np.arange(len(y)), y].mean())
