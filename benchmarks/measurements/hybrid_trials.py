"""What helps a network that is learned from the start under a Bayesian SVM: CIFAR-10, four epochs.

All 10 000 rows: "levels" as "hybrid" of `hybrid.py`, "Crammer-Singer" under the paper's likelihood
(penalty 4), "not normalised" without the last layer of batch normalisation that `deep.hybrid` adds,
"warm-up" with an epoch of steps on q alone first. ", before CAVI" are the epochs, then comes CAVI.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gpflow_bsvm import metrics
from gpflow_bsvm.likelihoods import CrammerSinger

from ._networks import BATCH, NUM_CLASSES, Hybrid, Images, images, network

NAME, EPOCHS = "CIFAR-10, four epochs", 4


def run() -> Iterator[dict]:
    warnings.simplefilter("ignore")
    data = images("cifar10_jpeg_12k")
    trials: dict[str, dict[str, Any]] = {
        "levels": {},
        "Crammer-Singer": {"likelihood": CrammerSinger(NUM_CLASSES, penalty=4.0)},
        "not normalised": {"normalize": False},
        "warm-up": {"warm_up": len(data.X) // BATCH},
    }
    for label, options in trials.items():
        yield from _trial(data, label, options)


def _trial(data: Images, label: str, options: dict[str, Any]) -> list[dict]:
    rows: list[dict] = []
    trial = Hybrid(network(data.shape), data.X, **options)
    note = partial(_row, data, f"{label}, before CAVI")
    trial.train(data.X, data.y, EPOCHS, lambda *seen: rows.append(note(*seen)))
    trial.finish(data.X, data.y)
    return [*rows, _row(data, label, EPOCHS, trial)]


def _row(data: Images, method: str, epoch: int, model: Hybrid) -> dict:
    P, y = model.predict(data.X_test), data.y_test
    scores = {key: getattr(metrics, key)(y, P) for key in ("error", "nll", "ece")}
    row = {"data": NAME, "method": method, "epoch": epoch, "seconds": model.seconds}
    return row | scores | {"largest": float(np.mean(P.max(axis=1)))}
