"""A network with a softmax layer, and with a Bayesian SVM in its place: epoch by epoch.

MNIST and Fashion-MNIST (60 000 rows), CIFAR-10 (10 000 of its rows). The last twelfth of the rows
is held out: no method trains on it, and each ends with the epoch that is best there (`KeepBest`;
three epochs without gain end it) and is calibrated there. The network has the layout of Wistuba &
Rawat (2018, section 4.2) with a twentieth of its products. Methods:

- "softmax", and "softmax, temperature";
- "hybrid": network, kernel, points and q together from the start, then three sweeps of CAVI, which
  are taken back if they are for the worse, and the scale of the log odds, under
  `OneVsRestLevelHinge` as it is;
- "hybrid, warm": the softmax network of the epoch before the best, one epoch together, and so on;
- "hybrid, frozen": the softmax network, and CAVI on its features; nothing else is learned.

"..., by epoch" are on the way, "hybrid, at the end" is the last of these, where it is not the best,
with CAVI and nothing taken back or calibrated, "CAVI" the sweeps after the best epoch, one by one,
with their own seconds.
Two trials of what keeps "hybrid" from overfitting on CIFAR-10, eight epochs: "penalty 1/2" (it
is 2), and "weight decay" by AdamW, of 1.

    python run.py hybrid               what is missing, and all rows
    LIMIT=600 python run.py hybrid     nothing is begun after ten minutes of processor time

Rows are kept in results/hybrid/NAME.csv as they come. Seconds are those of training until then, of
processor time: it ran beside other work.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gpflow.keras import tf_keras

from gpflow_bsvm import metrics
from gpflow_bsvm.deep import head
from gpflow_bsvm.inference import CAVI, KeepBest
from gpflow_bsvm.likelihoods import OneVsRestLevelHinge

from ._kept import Kept
from ._networks import NUM_CLASSES, Hybrid, Images, Softmax, column, images, network

CIFAR = "cifar10_jpeg_12k"
EPOCHS = {CIFAR: 24, "fashion_mnist": 4, "mnist": 4}
SEEDS, HELD_OUT, PATIENCE, SWEEPS = 3, 12, 3, 3
MILD_EPOCHS = 8
#: Sets whose sweeps of CAVI are looked at one by one, of the first seed.
SWEPT = (CIFAR,)
#: Rows of training whose NLL is told.
SOME = 1000


class Split(NamedTuple):
    """What is trained on, and what is held out."""

    X: np.ndarray
    y: np.ndarray
    held: tuple[np.ndarray, np.ndarray]
    data: Images


def run() -> list[dict]:
    warnings.simplefilter("ignore")
    kept = Kept("hybrid")
    for name, about, fit in _wanted():
        kept.complete(name, about, fit)
    return kept.rows("data", "seed", "arms")


def _wanted() -> Iterator[tuple[str, dict, Callable]]:
    """Yield file, what tells a fit, and the fit: seed by seed."""
    for seed in range(SEEDS):
        for name, epochs in EPOCHS.items():
            for arms in (_softmax, _hybrid):
                about = {"data": name, "seed": seed, "arms": arms.__name__[1:]}
                yield name, about, partial(arms, name, epochs, seed)
        for label in ("penalty 1/2", "weight decay") if seed == 0 else ():
            yield CIFAR, {"data": CIFAR, "seed": 0, "arms": label}, partial(_milder, label)


def _split(name: str) -> Split:
    data = images(name)
    held = len(data.X) // HELD_OUT
    own = slice(None, -held), slice(-held, None)
    (X, X_held), (y, y_held) = ([part[rows] for rows in own] for part in (data.X, data.y))
    return Split(X, y, (X_held, y_held), data)


def _softmax(name: str, epochs: int, seed: int) -> Iterator[dict]:
    """The softmax network, and what begins with it."""
    split, rows, states = _split(name), [], []
    X, y, held, data = split
    softmax = Softmax(data.shape, seed)

    def watch(number: int, model: Softmax) -> None:
        rows.append(_row(split, "softmax, by epoch", number, model))
        states.append((model.features.get_weights(), model.seconds))

    best = KeepBest(softmax.model, lambda: metrics.nll(held[1], softmax.predict(held[0])), PATIENCE)
    softmax.train(X, y, epochs, watch, best)
    best.restore()
    yield from rows
    yield _row(split, "softmax", best.number, softmax)
    softmax.calibrate(*held)
    yield _row(split, "softmax, temperature", best.number, softmax)

    frozen = Hybrid(softmax.features, X, seed)
    frozen.finish(X, y)
    frozen.calibrate(*held)
    frozen.seconds += softmax.seconds
    yield _row(split, "hybrid, frozen", best.number, frozen)

    weights, seconds = states[max(best.number - 2, 0)]
    warm_features = network(data.shape, seed)
    warm_features.set_weights(weights)
    warm = Hybrid(warm_features, X, seed)
    warm.seconds += seconds
    warm.train(X, y, 1)
    kept = KeepBest(warm.model, (held[0], column(held[1])))
    warm.finish(X, y, kept, max_steps=SWEEPS)
    warm.calibrate(*held)
    yield _row(split, "hybrid, warm", best.number, warm) | {"cavi": kept.number}


def _hybrid(name: str, epochs: int, seed: int) -> Iterator[dict]:
    """All together from the start."""
    split = _split(name)
    X, y, held, data = split
    model = Hybrid(network(data.shape, seed), X, seed)
    best = KeepBest(model.model, (held[0], column(held[1])), PATIENCE)
    rows = _by_epoch(split, model, epochs, "hybrid", best)
    yield from rows

    kept, seconds = best.number, model.seconds
    if kept < len(rows):
        model.finish(X, y, max_steps=SWEEPS)
        yield _row(split, "hybrid, at the end", len(rows), model)
        model.seconds = seconds
        best.restore()
    if seed == 0 and name in SWEPT:
        yield from _sweeps(split, model, kept)
        best.restore()
    model.finish(X, y, best, max_steps=SWEEPS)
    model.calibrate(*held)
    yield _row(split, "hybrid", kept, model) | {"cavi": int(best.number > kept)}


def _by_epoch(
    split: Split, model: Hybrid, epochs: int, label: str, best: KeepBest | None = None
) -> list[dict]:
    rows: list[dict] = []
    note = partial(_row, split, f"{label}, by epoch")
    model.train(split.X, split.y, epochs, lambda *seen: rows.append(note(*seen)), best)
    return rows


def _sweeps(split: Split, model: Hybrid, epoch: int) -> list[dict]:
    """CAVI to its end, told of sweep by sweep; `seconds` are its own."""
    rows, before = [], model.seconds
    model.seconds = 0.0
    rows.append(_row(split, "CAVI", epoch, model) | {"sweeps": 0})
    with model.clock():
        F = model.model.kernel.features_of(split.X)
    start = time.process_time()

    def note(step: int, _: Any) -> None:
        nonlocal start
        model.seconds += time.process_time() - start
        if step <= SWEEPS:
            rows.append(_row(split, "CAVI", epoch, model) | {"sweeps": step})
        start = time.process_time()

    data = F, column(split.y)
    sweeps = len(CAVI().run(head(model.model), data, callback=note, progress=False))
    rows.append(_row(split, "CAVI", epoch, model) | {"sweeps": sweeps})
    model.seconds = before
    return rows


def _milder(label: str) -> list[dict]:
    """As `_hybrid`, with one thing changed; what is best is not looked for."""
    split = _split(CIFAR)
    options: dict[str, Any] = {
        "penalty 1/2": {"likelihood": OneVsRestLevelHinge(NUM_CLASSES, penalty=0.5)},
        "weight decay": {"network_optimizer": tf_keras.optimizers.AdamW(1e-3, weight_decay=1.0)},
    }[label]
    model = Hybrid(network(split.data.shape), split.X, **options)
    return _by_epoch(split, model, MILD_EPOCHS, label)


def _row(split: Split, method: str, epoch: int, model: Any) -> dict:
    """:param epoch: that is kept, or has just passed."""
    seconds, data = model.seconds, split.data
    P = model.predict(data.X_test)
    scores = {key: getattr(metrics, key)(data.y_test, P) for key in ("error", "nll", "ece")}
    scores["nll_train"] = metrics.nll(split.y[:SOME], model.predict(split.X[:SOME]))
    return {"method": method, "epoch": epoch, "seconds": seconds, **scores}
