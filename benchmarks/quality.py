"""Predictive quality, 10 folds: what learns everything from the training rows against its peers.

All see the same standardised rows. `BSVMClassifier()` as it is; GPflow's SVGP with Bernoulli or
Softmax, the same kernel family (ARD squared exponential), as many inducing points and from the same
k-means, natural gradients and Adam on the kernel in turn until it has converged; scikit-learn's SVC
with C and gamma by grid search (by successive halving where rows are many), its decision values
calibrated by Platt's sigmoid or by a temperature, both on cross-validated ones. Classes with fewer
than 10 rows are left out.

    python quality.py NAME ...   folds of these sets into results/quality/NAME.csv
    python quality.py --only bsvm NAME ...   of this method, beside the rows of the others
    python run.py quality        those that are missing, and the means of all
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator

import gpflow
import numpy as np
import pandas as pd
from common import RESULTS
from sklearn.calibration import CalibratedClassifierCV
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import gpflow_bsvm as gb
from gpflow_bsvm import metrics
from gpflow_bsvm.compare.baselines import MONTE_CARLO
from gpflow_bsvm.compare.gp_baselines import SVGPPeer
from gpflow_bsvm.compare.training import KernelSettings
from gpflow_bsvm.datasets import load

FOLDS, NUM_INDUCING = 10, 100
FOLDER = RESULTS / "quality"
BINARY = (
    *("crabs", "heart", "sonar", "flare", "breast_cancer", "cancer", "diabetis", "pima", "german"),
    *("usps_3vs5", "splice", "banana", "phoneme", "waveform", "spambase", "ringnorm", "twonorm"),
)
MULTICLASS = (
    *(
        "iris",
        "auto",
        "lymphography",
        "flags",
        "glass",
        "balance-scale",
        "cars",
        "cleveland",
        "schizo",
    ),
    *("solar-flare_1", "analcatdata_authorship", "analcatdata_dmft", "vowel", "yeast", "car"),
    "mfeat-morphological",
)
#: More rows than these are searched by successive halving.
GRID_ROWS = 2000
SCORES = ("error", "nll", "brier")
GRID_C, GRID_GAMMA = (0.1, 1.0, 10.0, 100.0), (0.1, 0.3, 1.0, 3.0)


def run() -> list[dict]:
    for name in (*BINARY, *MULTICLASS):
        if not (FOLDER / f"{name}.csv").is_file():
            write_folds(name)
    return collect()


def collect() -> list[dict]:
    parts = [pd.read_csv(path) for path in sorted(FOLDER.glob("*.csv"))]
    rows = pd.concat(parts).groupby(["data", "classes", "n", "method"], sort=False)
    return rows[[*SCORES, "ece", "seconds"]].mean().reset_index().to_dict("records")


def write_folds(name: str, only: str = "") -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.csv"
    rows = _folds(name, only)
    if only:
        old = pd.read_csv(path)
        rows = pd.concat([rows, old[~old["method"].isin(rows["method"])]])
    rows.to_csv(path, index=False, float_format="%.6g")


def _folds(name: str, only: str) -> pd.DataFrame:
    data = load(name)
    y = np.unique(data.y, return_inverse=True)[1]
    kept = np.bincount(y)[y] >= FOLDS
    X, y = data.X[kept], np.unique(y[kept], return_inverse=True)[1]
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    rows, predicted = [], {}
    for row, p in _fits(X, y, folds, only):
        fold = folds[row["fold"]][1]
        pooled = predicted.setdefault(row["method"], np.empty((len(y), int(y.max()) + 1)))
        pooled[fold] = p
        scores = metrics.evaluate(y[fold], p)
        about = {"data": name, "classes": int(y.max()) + 1, "n": len(y)}
        rows.append({**about, **row, **{score: scores[score] for score in SCORES}})
    # Bins of a fold would hold a few rows each: this one is of all folds together.
    ece = {method: metrics.evaluate(y, pooled)["ece"] for method, pooled in predicted.items()}
    return pd.DataFrame(rows).assign(ece=lambda rows: rows["method"].map(ece))


def _fits(X, y, folds, only) -> Iterator[tuple[dict, np.ndarray]]:
    """Yield fold, method and training seconds, and p of the test rows."""
    peers = _peers(int(y.max()) + 1)
    for fold, (train, test) in enumerate(folds):
        scaler = StandardScaler().fit(X[train])
        rows = scaler.transform(X[train]), y[train]
        for method, fit in peers.items() if not only else [(only, peers[only])]:
            start = time.perf_counter()
            for label, predict in fit(*rows, fold):
                seconds = time.perf_counter() - start
                row = {"fold": fold, "method": label or method, "seconds": seconds}
                yield row, predict(scaler.transform(X[test]))


def _peers(num_classes: int) -> dict:
    if num_classes == 2:
        svgp = SVGPPeer(gpflow.likelihoods.Bernoulli(), ard=True)
    else:
        svgp = SVGPPeer(gpflow.likelihoods.Softmax(num_classes), MONTE_CARLO, ard=True)

    def fit_svgp(X, y, seed):
        Z = gb.inducing_points.kmeans(X, min(NUM_INDUCING, len(np.unique(X, axis=0))), seed=seed)
        kernel = KernelSettings(np.sqrt(X.shape[1]), 4.0, learn=True)
        svgp.fit(X, y, Z, kernel, seed)
        yield None, svgp.predict_proba

    return {"bsvm": _bsvm, "svgp": fit_svgp, "svc": _svc}


def _bsvm(X, y, seed):
    model = gb.BSVMClassifier(num_inducing=NUM_INDUCING, random_state=seed)
    yield None, model.fit(X, y).predict_proba


def _svc(X, y, seed):
    gamma = 1 / X.shape[1]
    grid = {"C": GRID_C, "gamma": [gamma * factor for factor in GRID_GAMMA]}
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    svc = SVC(cache_size=500)
    if len(X) > GRID_ROWS:  # rows double where settings halve
        search = HalvingGridSearchCV(
            svc, grid, cv=folds, refit=False, factor=2, min_resources=1000, random_state=seed
        )
    else:
        search = GridSearchCV(svc, grid, cv=folds, refit=False)
    best = svc.set_params(**search.fit(X, y).best_params_)
    five = StratifiedKFold(5, shuffle=True, random_state=seed)
    for name, method in (("svc, platt", "sigmoid"), ("svc, temperature", "temperature")):
        model = CalibratedClassifierCV(best, method=method, cv=five, ensemble=False).fit(X, y)
        yield name, model.predict_proba


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    only = arguments[1] if arguments[:1] == ["--only"] else ""
    for argument in arguments[2:] if only else arguments:
        begin = time.perf_counter()
        write_folds(argument, only)
        print(argument, f"{time.perf_counter() - begin:.0f} s", flush=True)
