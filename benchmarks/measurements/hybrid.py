"""A network with a softmax layer, and with a Bayesian SVM in its place: epoch by epoch.

MNIST and Fashion-MNIST (60 000 rows), CIFAR-10 (10 000 of its rows); the last twelfth of the rows
is held out for the temperature, and no method trains on it. The network has the layout of Wistuba &
Rawat (2018, section 4.2) with a twentieth of its products. Methods:

- "softmax", and "softmax, temperature" at the end of training;
- "hybrid": network, kernel, points and q together from the start, and q to its end by CAVI, under
  `OneVsRestLevelHinge` as it is;
- "hybrid, warm": the softmax network of all but the last epoch, then one together, then CAVI;
- "hybrid, frozen": the whole softmax network, and CAVI on its features; nothing else is learned.

And four epochs from the start on CIFAR-10: "levels" as "hybrid", "Crammer-Singer" under the paper's
likelihood (penalty 4), "not normalised" without the last layer of batch normalisation that
`deep.hybrid` adds, "warm-up" with an epoch of steps on q alone first.

Seconds are those of training until then, of processor time: it ran beside other work.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpflow_bsvm import metrics
from gpflow_bsvm.likelihoods import CrammerSinger

from ._networks import BATCH, NUM_CLASSES, Hybrid, Images, Softmax, images, network

EPOCHS = {"mnist": 4, "fashion_mnist": 4, "cifar10_jpeg_12k": 12}
JOINT_EPOCHS, HELD_OUT = 1, 12
TRIALS, TRIAL_EPOCHS = "CIFAR-10, four epochs", 4


def run(names: tuple[str, ...] = tuple(EPOCHS)) -> Iterator[dict]:
    warnings.simplefilter("ignore")
    for name in names:
        yield from _arms(name, images(name), EPOCHS[name])
    yield from _trials(images("cifar10_jpeg_12k"))


def _arms(name: str, data: Images, epochs: int) -> list[dict]:
    rows: list[dict] = []
    held = len(data.X) // HELD_OUT
    X, y = data.X[:-held], data.y[:-held]
    note = _noter(rows, name, data)
    early: list[Any] = []

    def watch(number: int, model: Softmax) -> None:
        note("softmax")(number, model)
        if number == epochs - JOINT_EPOCHS:
            early.extend([model.features.get_weights(), model.seconds])

    softmax = Softmax(data.shape)
    softmax.train(X, y, epochs, watch)
    softmax.calibrate(data.X[-held:], data.y[-held:])
    note("softmax, temperature")(epochs, softmax)

    frozen = Hybrid(softmax.features, X)
    frozen.finish(X, y)
    frozen.seconds += softmax.seconds
    note("hybrid, frozen")(epochs, frozen)

    warm_features = network(data.shape)
    warm_features.set_weights(early[0])
    warm = Hybrid(warm_features, X)
    warm.seconds += early[1]
    warm.train(X, y, JOINT_EPOCHS)
    warm.finish(X, y)
    note("hybrid, warm")(epochs, warm)

    hybrid = Hybrid(network(data.shape), X)
    hybrid.train(X, y, epochs, note("hybrid, before CAVI"))
    hybrid.finish(X, y)
    note("hybrid")(epochs, hybrid)
    return rows


def _trials(data: Images) -> list[dict]:
    rows: list[dict] = []
    note = _noter(rows, TRIALS, data)
    trials: dict[str, dict[str, Any]] = {
        "levels": {},
        "Crammer-Singer": {"likelihood": CrammerSinger(NUM_CLASSES, penalty=4.0)},
        "not normalised": {"normalise": False},
        "warm-up": {"warm_up": len(data.X) // BATCH},
    }
    for label, options in trials.items():
        trial = Hybrid(network(data.shape), data.X, **options)
        trial.train(data.X, data.y, TRIAL_EPOCHS, note(f"{label}, before CAVI"))
        trial.finish(data.X, data.y)
        note(label)(TRIAL_EPOCHS, trial)
    return rows


def _noter(rows: list[dict], name: str, data: Images) -> Callable[[str], Callable]:
    def of(method: str) -> Callable[[int, Any], None]:
        def note(number: int, model: Any) -> None:
            P, y = model.predict(data.X_test), data.y_test
            scores = {key: getattr(metrics, key)(y, P) for key in ("error", "nll", "ece")}
            row = {"data": name, "method": method, "epoch": number, "seconds": model.seconds}
            rows.append(row | scores | {"largest": float(np.mean(P.max(axis=1)))})
            print(rows[-1], flush=True)

        return note

    return of
