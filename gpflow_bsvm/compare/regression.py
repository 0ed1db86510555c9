"""Regression by one protocol: the same folds and scaling, for `BSVMRegressor` and its peers.

Labels are standardized by the training rows, so that errors and densities of all sets have one
unit. Methods without a density (SVR, boosting) get a Gaussian with the deviation of cross-validated
residuals.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.svm import SVR

from ..datasets import Dataset
from ..estimators import BSVMRegressor
from ..optional import require
from ..prediction import predict_log_density
from .splits import make_scaler

#: Ends of the intervals whose coverage is measured: 90 % of rows should lie between them.
LEVELS = (0.05, 0.95)


class Predicted(NamedTuple):
    """Predictions of a method for held-out rows."""

    mean: AnyNDArray  #: [N]
    log_density: AnyNDArray  #: [N], of the true y
    interval: AnyNDArray  #: [N, 2]


def gaussian(mean: AnyNDArray, deviation: Any, y: AnyNDArray) -> Predicted:
    """:return: predictions of N(mean, deviation^2)."""
    interval = stats.norm.ppf(LEVELS) * np.reshape(deviation, (-1, 1)) + mean[:, None]
    return Predicted(mean, stats.norm.logpdf(y, mean, deviation), interval)


def bsvm(X: AnyNDArray, y: AnyNDArray, X_test: AnyNDArray, y_test: AnyNDArray) -> Predicted:
    """:return: predictions of `BSVMRegressor()` with its defaults."""
    model = BSVMRegressor().fit(X, y)
    log_p = predict_log_density(model, (X_test, y_test)) - np.log(model.y_scale_)
    return Predicted(model.predict(X_test), log_p, model.predict_quantiles(X_test, LEVELS))


def searched(estimator: Any, grid: dict[str, list[Any]]) -> Callable[..., Predicted]:
    """:return: an estimator of scikit-learn, its options chosen by cross-validation."""

    def fit(X: AnyNDArray, y: AnyNDArray, X_test: AnyNDArray, y_test: AnyNDArray) -> Predicted:
        folds = KFold(3, shuffle=True, random_state=0)
        search = GridSearchCV(estimator, grid, cv=folds, scoring="neg_mean_absolute_error")
        best = search.fit(X, y).best_estimator_
        residual = y - cross_val_predict(best, X, y, cv=5)
        return gaussian(best.predict(X_test), residual.std(), y_test)

    return fit


_SVR_GRID: dict[str, list[Any]] = {
    "C": [0.1, 1, 10, 100],
    "gamma": [0.01, 0.03, 0.1, 0.3],
    "epsilon": [0.01, 0.1, 0.3],
}
_BOOSTING_GRID: dict[str, list[Any]] = {"learning_rate": [0.05, 0.1], "max_leaf_nodes": [7, 31]}
#: Functions of training rows and of rows to predict, by name.
METHODS: dict[str, Callable[..., Predicted]] = {
    "BSVMRegressor": bsvm,
    "SVR, grid": searched(SVR(), _SVR_GRID),
    "boosting, grid": searched(HistGradientBoostingRegressor(random_state=0), _BOOSTING_GRID),
}


def scored(predicted: Predicted, y: AnyNDArray) -> dict[str, float]:
    """:return: root mean squared and mean absolute error, NLL, and coverage of the intervals."""
    error, (low, high) = predicted.mean - y, predicted.interval.T
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.mean(np.abs(error))),
        "nll": -float(np.mean(predicted.log_density)),
        "coverage": float(np.mean((low <= y) & (y <= high))),
    }


def scores(
    X: AnyNDArray,
    y: AnyNDArray,
    methods: Mapping[str, Callable[..., Predicted]] = METHODS,
    folds: int = 10,
    seed: int = 0,
) -> Iterator[dict[str, Any]]:
    """
    :param methods: by name, as `METHODS`.
    :return: a row of scores for each fold and method, in units of the training rows' deviation.
    """
    parts = KFold(folds, shuffle=True, random_state=seed).split(X)
    for fold, (train, test) in enumerate(parts):
        scaler, mean, deviation = make_scaler().fit(X[train]), y[train].mean(), y[train].std()
        numbers = (y - mean) / (deviation or 1.0)
        rows = scaler.transform(X[train]), numbers[train], scaler.transform(X[test]), numbers[test]
        for name, method in methods.items():
            start = time.perf_counter()
            found = scored(method(*rows), numbers[test])
            seconds = time.perf_counter() - start
            yield {"fold": fold, "method": name, **found, "seconds": seconds}


def table_of(data: Dataset, folds: int, seed: int) -> tuple[Any, str]:
    """:return: a data frame of `scores`, and means and deviations over folds as text."""
    pandas = require("pandas")
    frame = pandas.DataFrame(scores(data.X, data.y, folds=folds, seed=seed))
    each = frame.groupby("method", sort=False)[["rmse", "mae", "nll", "coverage", "seconds"]]
    text = each.mean().round(3).astype(str) + "±" + each.std().round(3).astype(str)
    return frame.assign(set=data.name), str(text.to_string())
