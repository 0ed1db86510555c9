"""Few rows: `BSVMClassifier()` beside logistic regression and SVC with Platt's sigmoid.

20 to 150 training rows, stratified, of ten sets; two draws, and the other rows (at most 1000) are
predicted. Classes of fewer than 20 rows are left out, and sets of which less than a quarter would
be left to predict. Logistic regression has its C chosen of ten, and SVC C and gamma of twelve, by
five folds, or as many as the rarest class has rows; the sigmoid is fitted to decision values of
the same folds. All see standardised columns.

    python run.py few_rows
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from gpflow_bsvm import BSVMClassifier, metrics

from ._common import numbered

SIZES, DRAWS, FOLDS = (20, 40, 60, 80, 99, 101, 150), 2, 5
LEAST_OF_CLASS, MOST_TEST = 20, 1000
OF_SCIKIT_LEARN: dict[str, Callable] = {
    "digits": load_digits,
    "wine": load_wine,
    "wdbc": load_breast_cancer,
    "iris": load_iris,
}
SETS = (*OF_SCIKIT_LEARN, "heart", "sonar", "diabetis", "german", "banana", "glass")
GRID = {"svc__C": (0.1, 1.0, 10.0, 100.0)}


def run() -> Iterator[dict]:
    warnings.simplefilter("ignore")
    for name in SETS:
        yield from of_set(name)


def of_set(name: str, draws: int = DRAWS, methods: tuple[str, ...] = ()) -> Iterator[dict]:
    """
    :param methods: none: all.
    """
    X, y = load(name)
    for size in (size for size in SIZES if size <= 0.75 * len(y)):
        for draw in range(draws):
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, train_size=size, stratify=y, random_state=draw
            )
            for method, model in made(X_train, y_train).items():
                if methods and method not in methods:
                    continue
                start = time.process_time()
                model.fit(X_train, y_train)
                seconds = time.process_time() - start
                p = model.predict_proba(X_test[:MOST_TEST])
                scores = metrics.evaluate(y_test[:MOST_TEST], p)
                scores = {score: scores[score] for score in ("error", "nll", "ece")}
                about = {"data": name, "classes": int(y.max()) + 1, "n": size, "draw": draw}
                yield {**about, "method": method, "seconds": seconds, **scores}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """:return: rows of the larger classes, and labels 0..C-1."""
    if name in OF_SCIKIT_LEARN:
        X, y = OF_SCIKIT_LEARN[name](return_X_y=True)
    else:
        X, y = numbered(name)
    kept = np.bincount(y)[y] >= LEAST_OF_CLASS
    return X[kept], np.unique(y[kept], return_inverse=True)[1]


def made(X: np.ndarray, y: np.ndarray) -> dict[str, ClassifierMixin]:
    """:return: what is compared, for these rows; SVC with C and gamma found."""
    folds = StratifiedKFold(max(2, min(FOLDS, np.bincount(y).min())), shuffle=True, random_state=0)
    logistic = LogisticRegressionCV(Cs=10, cv=folds, scoring="neg_log_loss", max_iter=500)
    gamma = tuple(factor / X.shape[1] for factor in (0.3, 1.0, 3.0))
    svc = make_pipeline(StandardScaler(), SVC())
    search = GridSearchCV(svc, GRID | {"svc__gamma": gamma}, cv=folds).fit(X, y)
    best = search.best_estimator_
    return {
        "bsvm": BSVMClassifier(),
        "logistic": make_pipeline(StandardScaler(), logistic),
        "svc, platt": CalibratedClassifierCV(best, method="sigmoid", cv=folds, ensemble=False),
    }
