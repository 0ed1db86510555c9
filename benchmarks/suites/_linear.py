"""Fits of the linear machine of `wenzel2016`, and grids for its regularisation constant.

Generated rows: D = 10, x ~ N(0, I), y = sign(x^T beta + N(0, 1)), beta ~ N(0, I) of each split,
10 000 rows held out. Weights have the prior N(0, I) and the penalty is 2, so that the mode is the
SVM with C = 2; where the constant is learned, it is C = 2 times the variance of the weights that
`VEM` finds, and "error_svc" the error of LinearSVC there, whose fit counts. A grid lies between
C = 1e-4 and 100, and is decided by three folds of the training rows.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from gpflow_bsvm.compare.protocol import Fold
from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.models import LinearBSVM

from ._draws import PENALTY, Fitted, Steps, compared, pairs, predictor

GENERATED, NUM_WEIGHTS, HELD_OUT = "generated-", 10, 10_000
LOWEST, HIGHEST = 1e-4, 1e2


def generated(num_rows: int, split: int) -> Fold:
    random = np.random.default_rng(split)
    beta = random.normal(size=NUM_WEIGHTS)
    X = random.normal(size=(num_rows + HELD_OUT, NUM_WEIGHTS))
    y = (X @ beta + random.normal(size=len(X)) > 0).astype(int)
    test = np.arange(num_rows, len(X))
    return Fold(split, X[:num_rows], y[:num_rows], X[:0], X[test], y[test], test)


def _model(fold: Fold, bound: str) -> LinearBSVM:
    return LinearBSVM(fold.X.shape[1], Hinge(PENALTY, bound=bound), num_data=len(fold.y))


def _ascent(bound: str, fold: Fold, steps: Steps) -> Fitted:
    model = _model(fold, bound)
    history = steps.tight.run(model, pairs(fold), progress=False)
    return Fitted(predictor(model), {"steps": len(history)})


def _stochastic(fold: Fold, steps: Steps) -> Fitted:
    model = _model(fold, "augmented")
    steps.svi.run(model, pairs(fold), progress=False)
    return Fitted(predictor(model), {"steps": steps.svi.max_steps})


def _drawn(fold: Fold, steps: Steps) -> Fitted:
    return compared(partial(_model, fold), fold, steps, steps.linear_gibbs)


def _svc(fold: Fold, C: float = PENALTY) -> Fitted:
    return Fitted(LinearSVC(loss="hinge", C=C, max_iter=10_000).fit(fold.X, fold.y).predict, {})


def _constant(bound: str, fold: Fold, steps: Steps) -> Fitted:
    num_features = fold.X.shape[1]
    model = LinearBSVM(num_features, Hinge(PENALTY, bound=bound), 1 / num_features)
    steps.vem.run(model, pairs(fold), progress=False)
    C = PENALTY * float(model.kernel.variance.numpy())
    wrong = np.mean(_svc(fold, C).predict(fold.X_test) != fold.y_test)
    return Fitted(predictor(model), {"C": C, "error_svc": wrong})


def _grid(number: int, fold: Fold) -> Fitted:
    three = StratifiedKFold(3, shuffle=True, random_state=0)
    svc = LinearSVC(loss="hinge", max_iter=10_000)
    search = GridSearchCV(svc, {"C": np.geomspace(LOWEST, HIGHEST, number)}, cv=three)
    search.fit(fold.X, fold.y)
    return Fitted(search.predict, {"C": search.best_params_["C"]})


TRACED = {
    "linear-augmented": partial(_ascent, "augmented"),
    "linear-exact": partial(_ascent, "exact"),
    "linear-svi": _stochastic,
    "linear-mcmc": _drawn,
    "learned-augmented": partial(_constant, "augmented"),
    "learned-exact": partial(_constant, "exact"),
}
OTHERS = {
    "linear-svc": _svc,
    "grid-30": partial(_grid, 30),
    "grid-1000": partial(_grid, 1000),
}
