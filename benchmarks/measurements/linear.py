"""The linear machine: weights that are known, a constant that is learned, and many rows.

Rows of kind

    weights      generated data (D = 10, beta ~ N(0, 1)), 20 draws for each N: the cosine between
                 beta and the weights, error on 20 000 new rows, and how many of 90 % intervals hold
                 the weight that the link's limit makes of beta (a long fit, N = 100 000)
    constant     papers' experiment: the prior variance that `VEM` learns, in units of the SVM's C,
                 against LinearSVC over a grid of 100 C, on the same 10 folds
    large        a9a, w8a and 1 000 000 x 100 generated rows, a tenth held out: `BSVMClassifier`
                 with kernel="linear", `LinearBSVM` by CAVI and by SVI, LinearSVC with
                 CalibratedClassifierCV (three folds, its cheapest setting), SGDClassifier (hinge,
                 calibrated in the same way, and with log loss). Every C and alpha that has to be
                 found is found by three folds on 20 000 rows, over five values; that counts.

`seconds` are those of the process's CPU, on one core, tracing included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy.stats import norm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split
from sklearn.svm import LinearSVC

import gpflow_bsvm as gb
from gpflow_bsvm import metrics

from ._common import standardised

NUM_WEIGHTS, DRAWS, SIZES = 10, 20, (50, 200, 1000, 5000)
LEVEL = 0.9
CONSTANT_SETS = ("heart", "diabetis", "german", "sonar")
LARGE_SETS = ("a9a", "w8a", "generated")
GENERATED = (1_000_000, 100)
SEARCH_ROWS = 20_000


def run() -> list[dict]:
    large = [row for name in LARGE_SETS for row in _large(name)]
    return [*_weights(), *_constant(), *large]


def _labels(X: np.ndarray, beta: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return (X @ beta + random.normal(size=len(X)) > 0).astype(float)[:, None]


def _linear(X: np.ndarray, Y: np.ndarray) -> gb.models.LinearBSVM:
    model = gb.models.LinearBSVM(X.shape[1], gb.likelihoods.Hinge(2.0, bound="exact"), bias=False)
    gb.fit(model, (X, Y), progress=False)
    return model


def _weights() -> Iterator[dict]:
    for num_rows in SIZES:
        for draw in range(DRAWS):
            random = np.random.default_rng(draw)
            beta = random.normal(size=NUM_WEIGHTS)
            X, X_test, X_all = (
                random.normal(size=(n, NUM_WEIGHTS)) for n in (num_rows, 20_000, 100_000)
            )
            Y, y_test = _labels(X, beta, random), _labels(X_test, beta, random)[:, 0]
            limit = _linear(X_all, _labels(X_all, beta, random)).weights()[0][:, 0]
            model = _linear(X, Y)
            svc = LinearSVC(loss="hinge", C=2.0, fit_intercept=False, max_iter=100_000)
            estimates = {"LinearBSVM": model.weights()[0][:, 0]}
            estimates["LinearSVC"] = svc.fit(X, Y[:, 0]).coef_[0]
            low, high = (end[:, 0] for end in model.credible_intervals(LEVEL))
            for method, weights in estimates.items():
                yield {
                    "kind": "weights",
                    "data": "generated",
                    "n": num_rows,
                    "method": method,
                    "cosine": weights @ beta / np.linalg.norm(weights) / np.linalg.norm(beta),
                    "error": np.mean((X_test @ weights > 0) != y_test),
                    "best_error": np.mean((X_test @ beta > 0) != y_test),
                    "held": np.mean((low < limit) & (limit < high)) if "B" in method else "",
                }


def _constant() -> Iterator[dict]:
    grid = np.geomspace(1e-4, 1e2, 100)
    for name in CONSTANT_SETS:
        X, Y = standardised(name)
        folds = list(StratifiedKFold(10, shuffle=True, random_state=0).split(X, Y[:, 0]))
        start, learned, errors = time.process_time(), [], []
        for train, test in folds:
            likelihood = gb.likelihoods.Hinge(1.0, bound="exact")
            model = gb.models.LinearBSVM(X.shape[1], likelihood, 1 / X.shape[1])
            gb.inference.VEM().run(model, (X[train], Y[train]), progress=False)
            learned.append(float(model.kernel.variance.numpy()))
            errors.append(np.mean((model.predict_f(X[test])[0].numpy() > 0) != Y[test]))
        seconds = time.process_time() - start
        about = {"kind": "constant", "data": name, "n": len(X)}
        row = {"method": "VEM", "C": np.exp(np.mean(np.log(learned))), "error": np.mean(errors)}
        yield {**about, **row, "seconds": seconds}
        for C in grid:
            start = time.process_time()
            svc = LinearSVC(loss="hinge", C=C, max_iter=10_000)
            error = 1 - cross_val_score(svc, X, Y[:, 0], cv=folds).mean()
            row = {"method": "LinearSVC", "C": C, "error": error}
            yield {**about, **row, "seconds": time.process_time() - start}


def _generated() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    num_rows, num_columns = GENERATED
    X, beta = random.normal(size=(num_rows, num_columns)), random.normal(size=num_columns)
    return X, _labels(X, 2 * beta / np.sqrt(num_columns), random)


def _large(name: str) -> Iterator[dict]:
    X, Y = _generated() if name == "generated" else standardised(name)
    y = Y[:, 0].astype(int)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.1, stratify=y, random_state=0)
    for method, fit in METHODS.items():
        start = time.process_time()
        predict = fit(X, y)
        seconds = time.process_time() - start
        scores = metrics.evaluate(y_test, predict(X_test))
        scores = {score: scores[score] for score in ("error", "nll", "ece")}
        about = {"kind": "large", "data": name, "n": len(X), "method": method}
        yield {**about, **scores, "seconds": seconds}


def _searched(model, name: str, values: list[float], X: np.ndarray, y: np.ndarray):
    few = np.random.default_rng(0).permutation(len(X))[:SEARCH_ROWS]
    search = GridSearchCV(model, {name: values}, cv=3, refit=False).fit(X[few], y[few])
    return model.set_params(**search.best_params_)


def _calibrated(model, name: str, values: list[float]) -> Callable:
    def fit(X: np.ndarray, y: np.ndarray) -> Callable:
        best = _searched(model, name, values, X, y)
        return CalibratedClassifierCV(best, cv=3, ensemble=False).fit(X, y).predict_proba

    return fit


def _by(algorithm) -> Callable:
    def fit(X: np.ndarray, y: np.ndarray) -> Callable:
        likelihood = gb.likelihoods.Hinge(1.0, bound="exact")
        model = gb.models.LinearBSVM(X.shape[1], likelihood, 1 / X.shape[1])
        data = X, y[:, None].astype(float)
        model.num_data = len(X)
        algorithm.run(model, data, progress=False)
        gb.prediction.calibrate(model, data)

        def predict(X_test: np.ndarray) -> np.ndarray:
            f = gb.prediction.predict_marginals(model, X_test)
            p = norm.cdf(np.asarray(model.likelihood.probit_argument(*f))[:, 0])
            return np.column_stack([1 - p, p])

        return predict

    return fit


def _classifier(X: np.ndarray, y: np.ndarray) -> Callable:
    return gb.BSVMClassifier(kernel="linear").fit(X, y).predict_proba


def _sgd(X: np.ndarray, y: np.ndarray) -> Callable:
    model = SGDClassifier(loss="log_loss", average=True, random_state=0)
    return _searched(model, "alpha", ALPHAS, X, y).fit(X, y).predict_proba


ALPHAS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]
METHODS = {
    "BSVMClassifier": _classifier,
    "LinearBSVM, CAVI": _by(gb.inference.CAVI()),
    "LinearBSVM, SVI": _by(gb.inference.SVI(batch_size=1000, max_steps=1000)),
    "LinearSVC, calibrated": _calibrated(LinearSVC(dual=False), "C", [1e-3, 1e-2, 0.1, 1.0, 10.0]),
    "SGD hinge, calibrated": _calibrated(
        SGDClassifier(average=True, random_state=0), "alpha", ALPHAS
    ),
    "SGD log loss": _sgd,
}
