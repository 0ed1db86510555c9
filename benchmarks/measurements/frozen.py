"""Classifiers on the features of a trained network, as people use pretrained ones.

The network of `hybrid.py` is trained with a softmax layer on the first 30 000 rows, three epochs;
classifiers see its 32 features of 10 000 other rows, and are tested on 10 000 more. `bsvm` is
`BSVMClassifier()`; `bsvm, levels` a `BSVM` with `OneVsRestLevelHinge` and 50 points by CAVI, its
lengthscale the mean distance, as `deep.hybrid` has it; logistic regression has C, k-NN k, SVC C
and gamma from 3 folds on 2000 rows; SVC has Platt's sigmoid by 5 folds. Seconds are processor time.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from gpflow_bsvm import BSVMClassifier, metrics

from ._networks import Hybrid, Softmax, images

NETWORK_ROWS, ROWS, GRID_ROWS, EPOCHS = 30_000, 10_000, 2000, 3


def run(names: tuple[str, ...] = ("mnist", "fashion_mnist")) -> Iterator[dict]:
    warnings.simplefilter("ignore")
    for name in names:
        data = images(name, NETWORK_ROWS + ROWS)
        network = Softmax(data.shape)
        network.train(data.X[:NETWORK_ROWS], data.y[:NETWORK_ROWS], EPOCHS)
        X, y = data.X[NETWORK_ROWS:], data.y[NETWORK_ROWS:]
        yield _row(name, "the network's own softmax", network.predict(data.X_test), data, 0.0)
        start = time.process_time()
        hybrid = Hybrid(network.features, X)
        hybrid.finish(X, y)
        seconds = time.process_time() - start
        yield _row(name, "bsvm, levels", hybrid.predict(data.X_test), data, seconds)
        look = hybrid.model.kernel.features_of
        F, F_test = look(X), look(data.X_test)
        for method, fit in FITS.items():
            start = time.process_time()
            predict = fit(F, y)
            seconds = time.process_time() - start
            yield _row(name, method, predict(F_test), data, seconds)


def _row(name: str, method: str, P: np.ndarray, data, seconds: float) -> dict:
    scores = {key: getattr(metrics, key)(data.y_test, P) for key in ("error", "nll", "ece")}
    row = {"data": name, "method": method, **scores, "seconds": seconds}
    print(row, flush=True)
    return row


def _searched(model, grid: dict, X: np.ndarray, y: np.ndarray):
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=3)
    return model.set_params(**search.fit(X[:GRID_ROWS], y[:GRID_ROWS]).best_params_)


def _logistic(X: np.ndarray, y: np.ndarray) -> Callable:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    grid = {"logisticregression__C": (0.01, 0.1, 1.0, 10.0)}
    return _searched(model, grid, X, y).fit(X, y).predict_proba


def _neighbours(X: np.ndarray, y: np.ndarray) -> Callable:
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(weights="distance"))
    grid = {"kneighborsclassifier__n_neighbors": (5, 10, 20, 40)}
    return _searched(model, grid, X, y).fit(X, y).predict_proba


def _svc(X: np.ndarray, y: np.ndarray) -> Callable:
    grid = {"svc__C": (1.0, 10.0, 100.0), "svc__gamma": (0.003, 0.01, 0.03, 0.1)}
    model = make_pipeline(StandardScaler(), SVC())
    search = GridSearchCV(model, grid, cv=3).fit(X[:GRID_ROWS], y[:GRID_ROWS])
    model.set_params(**search.best_params_)
    return (
        CalibratedClassifierCV(model, method="sigmoid", cv=5, ensemble=False)
        .fit(X, y)
        .predict_proba
    )


def _bsvm(X: np.ndarray, y: np.ndarray) -> Callable:
    return BSVMClassifier(random_state=0).fit(X, y).predict_proba


FITS: dict[str, Callable] = {
    "bsvm": _bsvm,
    "logistic regression": _logistic,
    "k-NN": _neighbours,
    "SVC + Platt": _svc,
}
