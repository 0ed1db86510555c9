"""The fits of `wenzel2016`: rows, the kernel machine over all points, and its competitors.

Hyperparameters, variance and one lengthscale of a squared exponential, are learned by `VEM` from
200 inducing points (k-means; all rows where there are no more), then q over all points by `CAVI`.
The penalty is 2, as in the paper. Columns are standardised by the training part, pixels by one
scale for all. SVC has C and gamma by a grid in three folds of the training rows, scikit-learn's
`GaussianProcessClassifier` the kernel that its own evidence (Laplace) learns. Seconds are of the
processor, hyperparameters and grids included, tracing not; of a sampler those of its draws alone,
at the kernel of "bsvm-augmented".
"""

from __future__ import annotations

# isort: off
from . import _harness  # before GPflow
from . import _linear

# isort: on
from functools import partial

import gpflow
import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from gpflow_bsvm.compare.protocol import Fold, class_labels
from gpflow_bsvm.datasets import load
from gpflow_bsvm.inducing_points import kmeans
from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.models import BSVM, BatchBSVM
from gpflow_bsvm.priors import set_default_priors

from ._draws import FEW, PENALTY, WHOLE, Fitted, Steps, compared, pairs, predictor, timed

NUM_INDUCING, VARIANCE = 200, 4.0
GRID_C, GRID_GAMMA = (0.1, 1.0, 10.0, 100.0, 1000.0), (0.03, 0.1, 0.3, 1.0, 3.0)


def cut(name: str, split: int) -> Fold:
    """:return: a fold; its Z is empty."""
    if name.startswith(_linear.GENERATED):
        return _linear.generated(int(name.removeprefix(_linear.GENERATED)), split)
    dataset = load(f"binary/{name}")
    y = class_labels(dataset)[1]
    folds = StratifiedKFold(10, shuffle=True, random_state=0).split(dataset.X, y)
    train, test = list(folds)[split]
    scale = _one_scale if name == "usps_3vs5" else _standardised
    X, X_test = scale(dataset.X[train], dataset.X[test])
    return Fold(split, X, y[train], X[:0], X_test, y[test], test)


def _standardised(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test)


def _one_scale(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    centre, spread = X.mean(axis=0), np.sqrt(X.var(axis=0).mean())
    return (X - centre) / spread, (X_test - centre) / spread


def measure(method: str, fold: Fold) -> dict:
    """:return: cells of the row; of the scores `error` alone where there are no probabilities."""
    cells = {}
    if method in TRACED:
        cells["first_seconds"] = timed(TRACED[method], fold, FEW)[1]
        (predict, more), cells["seconds"] = timed(TRACED[method], fold, WHOLE)
    else:
        (predict, more), cells["seconds"] = timed(OTHERS[method], fold)
    p = np.asarray(predict(fold.X_test))
    if p.ndim == 1:
        return {"error": np.mean(p != fold.y_test), **cells, **more}
    P = np.hstack([1 - p, p]) if p.shape[1] == 1 else p
    return {**_harness.scored(fold, P), **cells, **more}


def _learned(bound: str, priors: bool, most: int | None, fold: Fold, steps: Steps) -> BatchBSVM:
    """:return: the machine over all points, with its q still the prior."""
    num_features = fold.X.shape[1]
    kernel = gpflow.kernels.SquaredExponential(VARIANCE, lengthscales=np.sqrt(num_features))
    if priors:
        set_default_priors(kernel, num_features, penalty=PENALTY)
    hinge = Hinge(PENALTY, bound=bound)
    model = BatchBSVM(pairs(fold), kernel, hinge)
    few = model
    if most is not None and most < len(fold.y):
        few = BSVM(kernel, hinge, kmeans(fold.X, most, seed=fold.number), num_data=len(fold.y))
        gpflow.set_trainable(few.inducing_variable, False)
    steps.vem.run(few, pairs(fold), progress=False)
    return model


def _machine(bound: str, priors: bool, most: int | None, fold: Fold, steps: Steps) -> Fitted:
    model = _learned(bound, priors, most, fold, steps)
    steps.cavi.run(model, pairs(fold), progress=False)
    return Fitted(predictor(model), _hyperparameters(model))


def _hyperparameters(model: BatchBSVM) -> dict:
    kernel = model.kernel
    return {
        "lengthscale": float(kernel.lengthscales.numpy()),
        "variance": float(kernel.variance.numpy()),
    }


def _drawn(fold: Fold, steps: Steps) -> Fitted:
    """Gibbs' draws at the kernel that "bsvm-augmented" learns."""
    kernel = _learned("augmented", False, NUM_INDUCING, fold, steps).kernel

    def model(bound: str) -> BatchBSVM:
        return BatchBSVM(pairs(fold), kernel, Hinge(PENALTY, bound=bound))

    return compared(model, fold, steps, steps.kernel_gibbs)


def _svc(fold: Fold) -> Fitted:
    grid = {"C": GRID_C, "gamma": [factor / fold.X.shape[1] for factor in GRID_GAMMA]}
    three = StratifiedKFold(3, shuffle=True, random_state=0)
    return Fitted(GridSearchCV(SVC(), grid, cv=three).fit(fold.X, fold.y).predict, {})


def _gpc(fold: Fold) -> Fitted:
    kernel = ConstantKernel(VARIANCE) * RBF(np.sqrt(fold.X.shape[1]))
    model = GaussianProcessClassifier(kernel).fit(fold.X, fold.y)
    variance, length = np.exp(model.kernel_.theta)
    return Fitted(model.predict_proba, {"lengthscale": length, "variance": variance})


TRACED = {
    "bsvm-augmented": partial(_machine, "augmented", False, NUM_INDUCING),
    "bsvm-exact": partial(_machine, "exact", False, NUM_INDUCING),
    "bsvm-exact-priors": partial(_machine, "exact", True, NUM_INDUCING),
    "bsvm-augmented-all": partial(_machine, "augmented", False, None),
    "bsvm-mcmc": _drawn,
    **_linear.TRACED,
}
OTHERS = {"svc": _svc, "gpc": _gpc, **_linear.OTHERS}
