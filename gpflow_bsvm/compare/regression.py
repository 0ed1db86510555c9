"""Regression: predictive distributions and their scores.

Labels are standardized with the training rows, so that errors and densities are comparable across
data sets. Methods without a density (SVR, boosting) get a Gaussian with the deviation of
cross-validated residuals.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from scipy import stats

from ..metrics import Loss, Metric

#: Levels of the predicted quantiles; the first and the last are the ends of a 90 % interval.
LEVELS = tuple(np.linspace(0.05, 0.95, 10))


def columns(mean: Any, log_density: Any, quantiles: Any) -> AnyNDArray:
    """:return: [n, 2 + T]: means, log densities of the true y, and quantiles at `LEVELS`."""
    return np.column_stack([mean, log_density, quantiles])


def gaussian(mean: AnyNDArray, deviation: Any, y: AnyNDArray) -> AnyNDArray:
    """:return: `columns` of N(mean, deviation^2); mean and y are [n], deviation [n] or []."""
    quantiles = stats.norm.ppf(LEVELS) * np.reshape(deviation, (-1, 1)) + mean[:, None]
    return columns(mean, stats.norm.logpdf(y, mean, deviation), quantiles)


LOSSES: dict[str, Loss] = {
    "mse": lambda y, P: np.square(P[:, 0] - y),
    "mae": lambda y, P: np.abs(P[:, 0] - y),
    "nll": lambda y, P: -P[:, 1],
}


def _covered(y: AnyNDArray, P: AnyNDArray) -> float:
    return float(np.mean((P[:, 2] <= y) & (y <= P[:, -1])))


def _mean(name: str, y: AnyNDArray, P: AnyNDArray) -> float:
    return float(LOSSES[name](y, P).mean())


METRICS = {
    "mse": Metric("MSE", partial(_mean, "mse"), "variances of the training labels"),
    "mae": Metric("MAE", partial(_mean, "mae"), "deviations of the training labels"),
    "nll": Metric("NLL", partial(_mean, "nll"), "nats per row"),
    "coverage": Metric("coverage", _covered, "share of rows in intervals of 90 %", None),
}


def evaluate(y: AnyNDArray, P: AnyNDArray) -> dict[str, float]:
    """
    :param y: [n]; P: [n, 2 + T], see `columns`.
    :return: the values of all `METRICS`.
    :raise ValueError: for predictions that are not finite.
    """
    if not np.isfinite(P).all():
        raise ValueError("predictions must be finite")
    return {name: metric.function(y, P) for name, metric in METRICS.items()}
