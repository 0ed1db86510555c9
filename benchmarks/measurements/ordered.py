"""Ordered classes and quantiles: beside classes without an order, and scikit-learn's quantiles.

The sets are those of `regression`; classes are fifths of y.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import gpflow
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import log_loss, mean_pinball_loss
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb

from .regression import sets

FOLDS, LEVELS = 3, (0.1, 0.5, 0.9)
FIFTHS = (0.2, 0.4, 0.6, 0.8)
CLASSIFIERS = {
    "ordered": lambda: gb.BSVMClassifier(multi_class="ordinal", random_state=0),
    "BSVMClassifier": lambda: gb.BSVMClassifier(random_state=0),
}


def tied(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    kernel = gpflow.kernels.SquaredExponential(lengthscales=np.full(X.shape[1], X.shape[1] ** 0.5))
    Z = gb.inducing_points.kmeans(X, min(100, len(np.unique(X, axis=0))))
    model = gb.models.BSVM(kernel + gpflow.kernels.Constant(), gb.likelihoods.Quantile(LEVELS), Z)
    gpflow.set_trainable(model.inducing_variable, False)
    gb.inference.VEM().run(model, (X, y[:, None]))
    return model.predict_y(X_test)[0].numpy()


def each(make: object) -> object:
    return lambda X, y, new: np.stack([make(t).fit(X, y).predict(new) for t in LEVELS], axis=-1)


QUANTILES = {
    "Quantile, tied": tied,
    "BSVMRegressor": lambda X, y, new: gb.BSVMRegressor().fit(X, y).predict_quantiles(new, LEVELS),
    "QuantileRegressor": each(lambda t: QuantileRegressor(quantile=t, alpha=0.0)),
    "boosting": each(lambda t: HistGradientBoostingRegressor(loss="quantile", quantile=t)),
}


def run() -> Iterator[dict]:
    warnings.simplefilter("ignore")
    for name, X, y in sets():
        for fold, (train, test) in enumerate(KFold(FOLDS, shuffle=True, random_state=0).split(X)):
            rows = {"data": name, "fold": fold}
            scaler = StandardScaler().fit(X[train])
            numbers = (y - y[train].mean()) / y[train].std()
            new = scaler.transform(X[test])
            for method, fit in QUANTILES.items():
                q = fit(scaler.transform(X[train]), numbers[train], new)
                losses = [
                    mean_pinball_loss(numbers[test], q[:, k], alpha=t) for k, t in enumerate(LEVELS)
                ]
                inside = np.mean((q[:, 0] <= numbers[test]) & (numbers[test] <= q[:, -1]))
                yield {**rows, "method": method, "pinball": np.mean(losses), "coverage": inside}
            classes = np.searchsorted(np.quantile(y[train], FIFTHS), y)
            for method, make in CLASSIFIERS.items():
                model = make().fit(X[train], classes[train])
                P, found = model.predict_proba(X[test]), model.predict(X[test])
                yield {
                    **rows,
                    "method": method,
                    "error": np.mean(found != classes[test]),
                    "mae": np.mean(np.abs(found - classes[test])),
                    "nll": log_loss(classes[test], P, labels=range(5)),
                }
