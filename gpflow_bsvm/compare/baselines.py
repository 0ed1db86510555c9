"""Models that are compared. One fits and predicts; it knows nothing of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from gpflow.base import AnyNDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from ..estimators import BSVMClassifier
from .registry import KernelSettings, Skipped
from .training import Watch

SVC_PENALTIES = (0.1, 1.0, 10.0, 100.0)
#: Factors on 1 / (2 lengthscale^2), searched where the kernel is learnt.
SVC_GAMMAS = (0.1, 0.3, 1.0, 3.0, 10.0)
#: Exact Gaussian processes stop here: time grows with N^3.
GPC_MAX_ROWS = 2000


class Baseline(Protocol):
    """
    :ivar has_trace: whether `fit` calls `watch`.
    :ivar note: what a reader should know about the latest fit, or nothing.
    """

    has_trace: bool
    note: str

    def fit(
        self,
        X: AnyNDArray,
        y: AnyNDArray,
        Z: AnyNDArray,
        kernel: KernelSettings,
        seed: int,
        watch: Watch | None = None,
    ) -> None:
        """
        :param X: [N, D], standardised.
        :param y: [N] in 0..C-1, with rows of every class.
        :param Z: [M, D] inducing points, for those that use them.
        :param seed: of own splits and draws.
        :param watch: called between steps, while `predict_proba` uses the state of that moment.
        """

    def predict_proba(self, X: AnyNDArray) -> AnyNDArray:
        """:return: p(y = c) of each row, [N, C]; rows sum to 1."""


class Estimator:
    """A scikit-learn classifier."""

    has_trace = False
    note = ""

    def __init__(self, fitted: Callable[..., Any]) -> None:
        """
        :param fitted: of X, y, Z, kernel and seed, such as `svc`: a fitted classifier.
        """
        self._fitted = fitted

    def fit(
        self,
        X: AnyNDArray,
        y: AnyNDArray,
        Z: AnyNDArray,
        kernel: KernelSettings,
        seed: int,
        watch: Watch | None = None,
    ) -> None:
        """See `Baseline`."""
        self._model = self._fitted(X, y, Z, kernel, seed)

    def predict_proba(self, X: AnyNDArray) -> AnyNDArray:
        """See `Baseline`."""
        return np.asarray(self._model.predict_proba(X))


def classifier(
    X: AnyNDArray, y: AnyNDArray, Z: AnyNDArray, kernel: KernelSettings, seed: int
) -> BSVMClassifier:
    """`BSVMClassifier` as it is, with M inducing points of its own (those of others have Z)."""
    if not kernel.learn:
        raise Skipped("it learns its kernel, which is fixed here")
    return BSVMClassifier(num_inducing=len(Z), random_state=seed).fit(X, y)


def svc(
    X: AnyNDArray, y: AnyNDArray, Z: AnyNDArray, kernel: KernelSettings, seed: int
) -> CalibratedClassifierCV:
    """
    scikit-learn's `SVC`; C by 3-fold grid search (it holds the kernel's variance), and gamma where
    the kernel is learnt; probabilities by Platt scaling on 5 folds. For more than two classes
    one-vs-one, scaled class by class, then divided by the sum.
    """
    gamma = 0.5 / kernel.lengthscale**2
    factors = SVC_GAMMAS if kernel.learn else (1.0,)
    grid = {"C": SVC_PENALTIES, "gamma": [gamma * factor for factor in factors]}
    folds = [StratifiedKFold(k, shuffle=True, random_state=seed) for k in (3, 5)]
    best = GridSearchCV(SVC(), grid, cv=folds[0], refit=False).fit(X, y).best_params_
    return CalibratedClassifierCV(SVC(**best), method="sigmoid", cv=folds[1], ensemble=False).fit(
        X, y
    )


def gpc(
    X: AnyNDArray, y: AnyNDArray, Z: AnyNDArray, kernel: KernelSettings, seed: int
) -> GaussianProcessClassifier:
    """
    scikit-learn's `GaussianProcessClassifier`: Laplace's method on all rows, in O(N^3);
    one-vs-rest for more than two classes.

    :raise Skipped: for more than 2000 rows.
    """
    if len(X) > GPC_MAX_ROWS:
        raise Skipped(f"{len(X)} training rows, its O(N^3) is kept to {GPC_MAX_ROWS}")
    lengthscales = np.full(X.shape[1], kernel.lengthscale) if kernel.learn else kernel.lengthscale
    covariance = ConstantKernel(kernel.variance) * RBF(lengthscales)
    optimizer = "fmin_l_bfgs_b" if kernel.learn else None
    return GaussianProcessClassifier(covariance, optimizer=optimizer).fit(X, y)
