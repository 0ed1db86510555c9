"""The compared models, which fit and predict independently of the protocol."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from sklearn.base import is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict
from sklearn.svm import SVC, SVR

from ..estimators import BSVMClassifier, BSVMRegressor
from ..likelihoods.labels import with_both_classes
from ..prediction import predict_log_density
from . import regression

SVC_PENALTIES = (0.1, 1.0, 10.0, 100.0)
#: Candidates for gamma if the kernel is learned, as multiples of 1 / (2 lengthscale^2).
SVC_GAMMAS = (0.1, 0.3, 1.0, 3.0, 10.0)


class Skipped(Exception):
    """The model does not suit these data; the message gives the reason."""


@dataclass(frozen=True)
class KernelSettings:
    """
    A squared exponential kernel on standardized features. If it is learned, these values are the
    first, and Gaussian processes have one lengthscale per feature.
    """

    lengthscale: float
    variance: float = 4.0
    learn: bool = False
    offset: float = 0.0  #: variance of a constant kernel, added for Gaussian processes; 0: none


class Task(NamedTuple):
    """The data and settings for fitting a model."""

    X: AnyNDArray  #: [N, D], standardized
    y: AnyNDArray  #: [N] in 0..C-1, every class present; or standardized numbers
    Z: AnyNDArray  #: [M, D] inducing points, for models that use them
    kernel: KernelSettings
    seed: int  #: for the model's own splits and draws


class Baseline(ABC):
    """
    A compared model. Classifiers define `_predict`, and regressors define `predict_numbers`.

    :ivar note: a remark for the reader on the latest fit, or an empty string.
    :ivar last_gain: the relative increase of the model's own bound at the end of the latest fit;
        NaN for a model without a bound.
    """

    note = ""
    last_gain = math.nan

    def fit(
        self, X: AnyNDArray, y: AnyNDArray, Z: AnyNDArray, kernel: KernelSettings, seed: int
    ) -> None:
        """Fit the model; arguments are as in `Task`."""
        self.note = self._fit(Task(X, y, Z, kernel, seed))

    @abstractmethod
    def _fit(self, task: Task) -> str:
        """:return: the note."""

    def predict_proba(self, X: AnyNDArray) -> AnyNDArray:
        """:return: p(y = c) of each row, [N, C]; rows sum to 1."""
        p = with_both_classes(np.asarray(self._predict(X)))
        return p / p.sum(axis=1, keepdims=True)  # RobustMax's quadrature is off by about 1e-4

    def _predict(self, X: AnyNDArray) -> Any:
        """:return: p(y = 1) [N, 1], or [N, C] with rows that nearly sum to 1."""
        raise NotImplementedError

    def predict_numbers(self, X: AnyNDArray, y: AnyNDArray) -> AnyNDArray:
        """
        :param y: [N], the true labels.
        :return: densities of y and other predictions, see `regression.columns`.
        """
        raise NotImplementedError


class Estimator(Baseline):
    """A scikit-learn estimator; residuals give a density to a regressor without one."""

    def __init__(self, fitted: Callable[[Task], Any]) -> None:
        """:param fitted: a function such as `svc` that returns a fitted estimator."""
        self._fitted = fitted

    def _fit(self, task: Task) -> str:
        model = self._model = self._fitted(task)
        if hasattr(model, "model_"):
            of_classes = isinstance(model, BSVMClassifier)
            options = f"{model.loss_}, penalty {model.penalty_:g}, " if of_classes else ""
            return f"chose {options}{model.model_.q_shape[1]} inducing points"
        if is_regressor(model):
            self._deviation = (task.y - cross_val_predict(model, task.X, task.y, cv=5)).std()
        return ""

    def _predict(self, X: AnyNDArray) -> Any:
        return self._model.predict_proba(X)

    def predict_numbers(self, X: AnyNDArray, y: AnyNDArray) -> AnyNDArray:
        model = self._model
        if not hasattr(model, "model_"):
            return regression.gaussian(model.predict(X), self._deviation, y)
        log_p = predict_log_density(model, (X, y))
        quantiles = model.predict_quantiles(X, regression.LEVELS)
        return regression.columns(model.predict(X), log_p, quantiles)


def classifier(task: Task) -> BSVMClassifier:
    """:return: `BSVMClassifier` with its defaults, which chooses M itself."""
    if not task.kernel.learn:
        raise Skipped("it learns its kernel, which is fixed here")
    return BSVMClassifier(random_state=task.seed).fit(task.X, task.y)


def regressor(task: Task) -> BSVMRegressor:
    """:return: `BSVMRegressor` with its defaults, which chooses M itself."""
    return BSVMRegressor(random_state=task.seed).fit(task.X, task.y)


def svc(task: Task) -> CalibratedClassifierCV:
    """
    Make scikit-learn's `SVC`. A 3-fold grid search chooses C (which includes the kernel's variance)
    and, if the kernel is learned, gamma. Platt scaling on 5 folds (fewer if the rarest class has
    fewer rows) gives probabilities. Machines for more than two classes are one-vs-one;
    probabilities are scaled class by class, then normalized.
    """
    X, y, _, kernel, seed = task
    factors = np.array(SVC_GAMMAS if kernel.learn else (1.0,))
    grid = {"C": SVC_PENALTIES, "gamma": factors * 0.5 / kernel.lengthscale**2}
    fewest = np.bincount(y).min()
    if fewest < 2:
        raise Skipped("a class has one training row, but Platt scaling holds out a row per class")
    folds = (min(k, fewest) for k in (3, 5))
    three, five = (StratifiedKFold(k, shuffle=True, random_state=seed) for k in folds)
    best = SVC(**GridSearchCV(SVC(), grid, cv=three, refit=False).fit(X, y).best_params_)
    return CalibratedClassifierCV(best, method="sigmoid", cv=five, ensemble=False).fit(X, y)


def svr(task: Task) -> SVR:
    """:return: scikit-learn's `SVR`."""
    grid = {"C": [0.1, 1, 10, 100], "gamma": [0.01, 0.03, 0.1, 0.3], "epsilon": [0.01, 0.1, 0.3]}
    return _searched(SVR(), grid, task)


def boosting(task: Task) -> HistGradientBoostingRegressor:
    """:return: scikit-learn's boosted trees."""
    grid = {"learning_rate": [0.05, 0.1], "max_leaf_nodes": [7, 31]}
    return _searched(HistGradientBoostingRegressor(random_state=0), grid, task)


def _searched(estimator: Any, grid: Any, task: Task) -> Any:
    """:return: a fitted regressor with options chosen by 3-fold cross-validation."""
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(estimator, grid, cv=folds, scoring="neg_mean_absolute_error")
    return search.fit(task.X, task.y).best_estimator_
