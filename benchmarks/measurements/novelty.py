"""Novelty: areas under the ROC curve of `OneClassBSVM()` and scikit-learn's detectors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from gpflow_bsvm import OneClassBSVM

from ._common import numbered

SETS = "iris breast_cancer diabetis heart phoneme vowel glass segment satimage waveform yeast"
METHODS = {
    "OneClassBSVM": OneClassBSVM,
    "OneClassSVM": lambda: make_pipeline(StandardScaler(), OneClassSVM(nu=0.1)),
    "IsolationForest": lambda: IsolationForest(random_state=0),
    "LocalOutlierFactor": lambda: make_pipeline(StandardScaler(), LocalOutlierFactor(novelty=True)),
}


def run(splits: int = 5, most: int = 1000) -> Iterator[dict]:
    for name in SETS.split():
        try:
            X, y = numbered(name)
        except ValueError:
            continue
        usual = y == np.bincount(y).argmax()
        for split in range(splits):
            order = np.random.default_rng(split).permutation(np.flatnonzero(usual))[: 2 * most]
            seen, kept = np.array_split(order, 2)
            test = np.concatenate([kept, np.flatnonzero(~usual)[:most]])
            for method, make in METHODS.items():
                score = make().fit(X[seen]).decision_function(X[test])
                auc = roc_auc_score(usual[test], score)
                yield {"data": name, "split": split, "method": method, "auc": auc}
