"""The table of Wenzel et al. (2016): 10-fold error of the kernel machine over all points.

`BatchBSVM` with an isotropic squared exponential. Its two hyperparameters are learned by `VEM` with
200 inducing points, as the paper tunes its own by the bound; then q over all points. Against
scikit-learn's SVC, C and gamma by grid search in three folds of the training rows, and its
`GaussianProcessClassifier` at the kernel that we learned (its own search takes too long on USPS).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import gpflow
import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import gpflow_bsvm as gb

from ._common import numbered, ten_folds, usual_kernel
from .inducing import scaled

SETS = ("sonar", "crabs", "pima", "usps_3vs5")
GRID = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0]}


def run() -> Iterator[dict]:
    for name in SETS:
        X, y = numbered(name)
        scale = scaled if name == "usps_3vs5" else _standardised  # pixels have one scale for all
        for fold, (train, test) in ten_folds(X, y):
            X_train, X_test = scale(X[train], X[test])
            for method, predicted, seconds in _fits(X_train, y[train], X_test):
                row = {"data": name, "fold": fold, "method": method}
                yield {**row, "error": np.mean(predicted != y[test]), "seconds": seconds}


def _standardised(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test)


def _fits(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> Iterator[tuple]:
    num_features, data = X.shape[1], (X, y[:, None].astype(float))
    start = time.process_time()
    kernel = usual_kernel(num_features)
    gb.priors.set_default_priors(kernel, num_features, penalty=2.0)
    likelihood = gb.likelihoods.Hinge(2.0, bound="exact")  # the paper's penalty
    Z = gb.inducing_points.kmeans(X, min(200, len(np.unique(X, axis=0))))
    few = gb.models.BSVM(kernel, likelihood, Z)
    gpflow.set_trainable(few.inducing_variable, False)
    gb.inference.VEM().run(few, data, progress=False)
    model = gb.models.BatchBSVM(data, kernel, likelihood)
    gb.fit(model, progress=False)
    seconds = time.process_time() - start
    yield "BatchBSVM", model.predict_f(X_test)[0].numpy()[:, 0] > 0, seconds
    start = time.process_time()
    grid = {**GRID, "gamma": [f / num_features for f in (0.03, 0.1, 0.3, 1.0, 3.0)]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(SVC(), grid, cv=folds).fit(X, y)
    yield "SVC", search.predict(X_test), time.process_time() - start
    start = time.process_time()
    rbf = RBF(float(kernel.lengthscales.numpy()))
    gpc = GaussianProcessClassifier(
        ConstantKernel(float(kernel.variance.numpy())) * rbf, optimizer=None
    ).fit(X, y)
    yield "GPC", gpc.predict(X_test), time.process_time() - start
