"""A network with a softmax layer, and with a Bayesian SVM in its place: epoch by epoch.

MNIST and Fashion-MNIST (60 000 rows), CIFAR-10 (10 000 of its rows); the last twelfth of the rows
is held out for the temperature, and no method trains on it. The network has the layout of Wistuba &
Rawat (2018, section 4.2) with a twentieth of its products. Methods:

- "softmax", and "softmax, temperature" at the end of training;
- "hybrid": network, kernel, points and q together from the start, and q to its end by CAVI;
- "hybrid, warm": the softmax network of all but the last two epochs, then two together, then CAVI;
- "hybrid, frozen": the whole softmax network, and CAVI on its features; nothing else is learned;
- "one epoch": as "hybrid", on all rows of MNIST; "not normalised" without the last layer of batch
  normalisation that `deep.hybrid` adds, "warm-up" with half an epoch of steps on q alone before.

Seconds are those of training until then, of processor time: it ran beside other work.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpflow_bsvm import metrics

from ._networks import BATCH, Hybrid, Images, Softmax, images, network

EPOCHS = {"mnist": 6, "fashion_mnist": 6, "cifar10_jpeg_12k": 12}
JOINT_EPOCHS, HELD_OUT = 2, 12
TRIALS = "mnist, one epoch"


def run(names: tuple[str, ...] = tuple(EPOCHS)) -> Iterator[dict]:
    warnings.simplefilter("ignore")
    for name in names:
        yield from _arms(name, images(name), EPOCHS[name])
    yield from _trials(images("mnist"))


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
    half = len(data.X) // BATCH // 2
    for label, options in (
        ("one epoch", {}),
        ("warm-up", {"warm_up": half}),
        ("not normalised", {"normalise": False}),
    ):
        trial = Hybrid(network(data.shape), data.X, **options)
        trial.train(data.X, data.y, 1, note(f"{label}, before CAVI"))
        trial.finish(data.X, data.y)
        note(label)(1, trial)
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
