"""Two decision rules: the class of the largest mean of f, and that of the largest probability.

Wistuba & Rawat (2018) decide by argmax f; this package by argmax P(argmax_j f_j + e_j = c), which
knows variances. They can differ only where classes are known unequally well.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb
from gpflow_bsvm.papers import wistuba2018

from ._common import numbered, usual_kernel

SETS, SPLITS = ("digits", "multiclass/yeast"), 3
#: Bound, and a name that ends in that of the algorithm.
FITS = (
    ("exact", "exact, CAVI"),
    ("wistuba2018", "published, CAVI"),
    ("wistuba2018", "published, in turn"),
)
ALGORITHMS = {
    "CAVI": gb.inference.CAVI(),
    # Half steps: of whole ones the end is a matter of chance.
    "in turn": wistuba2018.ClassByClass(max_steps=50, learning_rate=0.5),
}


def run() -> Iterator[dict]:
    for name in SETS:
        for split in range(SPLITS):
            X, y = numbered(name)
            parts = train_test_split(X, y, test_size=0.25, stratify=y, random_state=split)
            scaler = StandardScaler().fit(parts[0])
            parts[:2] = map(scaler.transform, parts[:2])
            for bound, fit in FITS:
                yield {"data": name, "split": split, "bound": fit, **_decide(bound, fit, *parts)}


def _decide(bound: str, fit: str, X, X_test, y, y_test) -> dict:
    C = int(y.max()) + 1
    likelihood = wistuba2018.CrammerSinger(C, bound=bound)
    Z = gb.inducing_points.kmeans(X, 100)
    model = gb.models.BSVM(usual_kernel(X.shape[1]), likelihood, Z, num_latent_gps=C)
    data = X, y[:, None].astype(float)
    history = ALGORITHMS[fit.split(", ")[-1]].run(model, data, progress=False)
    by_mean = gb.prediction.predict_marginals(model, X_test)[0].argmax(axis=1)
    by_probability = gb.prediction.predict_probabilities(model, X_test).argmax(axis=1)
    return {
        "sweeps": len(history),
        "rows": len(y_test),
        "differ": int(np.sum(by_mean != by_probability)),
        "error_mean": np.mean(by_mean != y_test),
        "error_probability": np.mean(by_probability != y_test),
    }
