"""Novelty: rules for the lengthscale of `OneClassBSVM`, and scores from both moments of f.

Up to three classes of each set in turn are the usual one: half of its rows (at most 400) are seen,
the other half and at most 500 rows of other classes are scored. The first sets are those of
`novelty`, the others were not looked at when a rule was made.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from gpflow.kernels import SquaredExponential
from scipy.spatial.distance import pdist
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from gpflow_bsvm import OneClassBSVM

from ._common import numbered
from .novelty import SETS

OTHERS = "sonar german banana car cancer ringnorm twonorm splice mfeat-karhunen"
OTHERS += " mfeat-morphological analcatdata_authorship balance-scale"
FEWEST = 60
PEERS = {
    "OneClassSVM": lambda: OneClassSVM(nu=0.1),
    "IsolationForest": lambda: IsolationForest(random_state=0),
    "LocalOutlierFactor": lambda: LocalOutlierFactor(novelty=True),
}


def neighbour(rank: int) -> Callable[[np.ndarray], float]:
    """:return: a rule: the median distance of a row to its neighbour of this rank."""

    def rule(X: np.ndarray) -> float:
        distances, _ = NearestNeighbors(n_neighbors=rank).fit(X).kneighbors()
        return float(np.median(distances[:, -1]))

    return rule


RULES = {
    ".75 median distance": lambda X: 0.75 * np.median(pdist(X)),
    ".5 median distance": lambda X: 0.5 * np.median(pdist(X)),
    "gamma='scale'": lambda X: (X.shape[1] / 2) ** 0.5,
    "half of that": lambda X: (X.shape[1] / 8) ** 0.5,
    **{f"neighbour {rank}": neighbour(rank) for rank in (3, 5, 8, 11)},
}


def run() -> Iterator[dict]:
    warnings.simplefilter("ignore")
    for group, names in (("first", SETS), ("others", OTHERS)):
        for name in names.split():
            try:
                X, y = numbered(name)
            except ValueError:  # not there
                continue
            counts = np.bincount(y)
            for label in np.argsort(-counts)[:3]:
                if counts[label] >= FEWEST:
                    about = {"group": group, "data": name, "label": int(label)}
                    yield from ({**about, **row} for row in _of_class(X, y == label))


def _of_class(X: np.ndarray, usual: np.ndarray) -> Iterator[dict]:
    order = np.random.default_rng(0).permutation(np.flatnonzero(usual))[:800]
    seen, kept = np.array_split(order, 2)
    new = np.random.default_rng(1).permutation(np.flatnonzero(~usual))[:500]
    scaler, test = StandardScaler().fit(X[seen]), np.concatenate([kept, new])
    A, B = scaler.transform(X[seen]), scaler.transform(X[test])
    for name, make in PEERS.items():
        score = make().fit(A).decision_function(B)
        yield {"rule": "", "score": name, "auc": roc_auc_score(usual[test], score)}
    for name, rule in RULES.items():
        machine = OneClassBSVM(kernel=SquaredExponential(4.0, lengthscales=rule(A))).fit(A)
        mean, std = machine.score_samples(B, return_std=True)
        scores = {"mean": mean, "mean - 2 std": mean - 2 * std, "- std": -std}
        for score, values in scores.items():
            yield {"rule": name, "score": score, "auc": roc_auc_score(usual[test], values)}
