"""Regression by one protocol: the same folds and scaling, for `BSVMRegressor` and its peers.

Labels are standardised by the training rows, so that errors and densities of all sets have one
unit. What has no density (SVR, boosting) gets a Gaussian whose deviation is that of residuals of a
cross-validation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from .. import inducing_points
from ..datasets import Dataset
from ..estimators import BSVMRegressor
from ..optional import require
from ..prediction import predict_log_density

#: Ends of the intervals whose coverage is looked at: 90 % of rows should lie between them.
LEVELS = (0.05, 0.95)
#: X and y to learn from, X and y to predict.
Rows = tuple[AnyNDArray, AnyNDArray, AnyNDArray, AnyNDArray]


class Predicted(NamedTuple):
    """What a method says of held-out rows."""

    mean: AnyNDArray  #: [N]
    log_density: AnyNDArray  #: [N], of the true y
    interval: AnyNDArray  #: [N, 2]


def gaussian(mean: AnyNDArray, deviation: Any, y: AnyNDArray) -> Predicted:
    """:return: what N(mean, deviation^2) says."""
    interval = stats.norm.ppf(LEVELS) * np.reshape(deviation, (-1, 1)) + mean[:, None]
    return Predicted(mean, stats.norm.logpdf(y, mean, deviation), interval)


def bsvm(X: AnyNDArray, y: AnyNDArray, X_test: AnyNDArray, y_test: AnyNDArray) -> Predicted:
    """:return: what `BSVMRegressor()` says, as it is."""
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


def _kernel(X: AnyNDArray) -> gpflow.kernels.Kernel:
    lengthscales = np.full(X.shape[1], np.sqrt(X.shape[1]))
    return gpflow.kernels.SquaredExponential(lengthscales=lengthscales) + gpflow.kernels.Constant()


def _minimise(model: Any, loss: Callable[[], Any]) -> None:
    gpflow.optimizers.Scipy().minimize(loss, model.trainable_variables, options={"maxiter": 300})


def gpr(X: AnyNDArray, y: AnyNDArray, X_test: AnyNDArray, y_test: AnyNDArray) -> Predicted:
    """:return: what GPflow's exact Gaussian process says."""
    model = gpflow.models.GPR((X, y[:, None]), _kernel(X), noise_variance=0.1)
    _minimise(model, model.training_loss)
    mean, variance = (part.numpy()[:, 0] for part in model.predict_y(X_test))
    return gaussian(mean, np.sqrt(variance), y_test)


def svgp(make: Callable[[], gpflow.likelihoods.Likelihood]) -> Callable[..., Predicted]:
    """:return: GPflow's `SVGP` of at most 100 inducing points and a likelihood."""

    def fit(X: AnyNDArray, y: AnyNDArray, X_test: AnyNDArray, y_test: AnyNDArray) -> Predicted:
        Z = inducing_points.kmeans(X, min(100, len(np.unique(X, axis=0))))
        model = gpflow.models.SVGP(_kernel(X), make(), Z)
        gpflow.set_trainable(model.inducing_variable, False)
        _minimise(model, model.training_loss_closure((X, y[:, None])))
        mean, variance = (part.numpy()[:, 0] for part in model.predict_y(X_test))
        log_p = model.predict_log_density((X_test, y_test[:, None])).numpy()
        return gaussian(mean, np.sqrt(variance), y_test)._replace(log_density=log_p)

    return fit


_SVR_GRID: dict[str, list[Any]] = {
    "C": [0.1, 1, 10, 100],
    "gamma": [0.01, 0.03, 0.1, 0.3],
    "epsilon": [0.01, 0.1, 0.3],
}
_BOOSTING_GRID: dict[str, list[Any]] = {"learning_rate": [0.05, 0.1], "max_leaf_nodes": [7, 31]}
METHODS: dict[str, Callable[..., Predicted]] = {
    "BSVMRegressor": bsvm,
    "SVR, grid": searched(SVR(), _SVR_GRID),
    "boosting, grid": searched(HistGradientBoostingRegressor(random_state=0), _BOOSTING_GRID),
    "GPR": gpr,
    "SVGP, Gaussian": svgp(lambda: gpflow.likelihoods.Gaussian(0.1)),
    "SVGP, Student t": svgp(lambda: gpflow.likelihoods.StudentT(0.3)),
}
#: Those of the command line: the others take their time.
DEFAULT_METHODS = ("BSVMRegressor", "SVR, grid", "boosting, grid")


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
    X: AnyNDArray, y: AnyNDArray, methods: Any = DEFAULT_METHODS, folds: int = 10, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """
    :param methods: names in `METHODS`.
    :return: a row of scores for each fold and method, in units of the training rows' deviation.
    """
    parts = KFold(folds, shuffle=True, random_state=seed).split(X)
    for fold, (train, test) in enumerate(parts):
        scaler, mean, deviation = StandardScaler().fit(X[train]), y[train].mean(), y[train].std()
        numbers = (y - mean) / (deviation or 1.0)
        rows = scaler.transform(X[train]), numbers[train], scaler.transform(X[test]), numbers[test]
        for method in methods:
            start = time.perf_counter()
            found = scored(METHODS[method](*rows), numbers[test])
            seconds = time.perf_counter() - start
            yield {"fold": fold, "method": method, **found, "seconds": seconds}


def table_of(data: Dataset, folds: int, seed: int) -> tuple[Any, str]:
    """:return: a data frame of `scores`, and means and deviations over folds as text."""
    pandas = require("pandas")
    frame = pandas.DataFrame(scores(data.X, data.y, folds=folds, seed=seed))
    each = frame.groupby("method", sort=False)[["rmse", "mae", "nll", "coverage", "seconds"]]
    text = each.mean().round(3).astype(str) + "±" + each.std().round(3).astype(str)
    return frame.assign(set=data.name), str(text.to_string())
