"""AUC on held-out rows against seconds from cold, in five million rows, a process for each method.

`SusyLike`, standardised; q only, at the same kernel and the same 64 points, the k-means of which
counts. The clock begins when everything is imported and the rows are in memory, tracing included,
and stands still while a model is scored. Ours: `fit`, which begins with 20 000 rows (scored then,
too) and goes on by passes over all, and `SVI` at batch sizes of which 100 is that of Wenzel et al.
(2017). Peers: SVGP + Bernoulli with GPflow's natural gradients in a compiled loop, at several batch
and step sizes, in single and in double precision; Nystroem with SGDClassifier;
HistGradientBoosting.

`python -m measurements.time_to_auc METHOD`, in `benchmarks`, is one such process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import gpflow
import numpy as np
import tensorflow as tf
from generated import SusyLike

import gpflow_bsvm as gb
from gpflow_bsvm import metrics

choosing = importlib.import_module("gpflow_bsvm.inference.fit")
NUM_ROWS, HELD_OUT, NUM_POINTS, SECONDS = 5_000_000, 100_000, 64, 25.0
SVGP = [
    *("SVGP float32, batch 1000, step 0.03", "SVGP float32, batch 5000, step 0.1"),
    *("SVGP float32, batch 20000, step 0.1", "SVGP float32, batch 20000, step 0.3"),
    "SVGP float64, batch 5000, step 0.1",
]
SVI = [f"SVI, batch {batch}" for batch in (100, 1000, 5000)]
METHODS = ["fit", *SVI, *SVGP, "Nystroem + SGD", "HistGradientBoosting"]


def run(methods: list[str] = METHODS) -> Iterator[dict]:
    for method in methods:
        command = [sys.executable, "-m", "measurements.time_to_auc", method]
        how = {"check": True, "capture_output": True, "text": True}
        done = subprocess.run(command, cwd=Path(__file__).parents[1], **how)
        for line in done.stdout.splitlines():
            row = {"method": method, **json.loads(line)}
            print(row, flush=True)
            yield row


class Clock:
    """Stands still while something is scored."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        self._X, self._y, self._start = X, y, time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def score(self, predict: Callable[[np.ndarray], np.ndarray]) -> None:
        before = time.perf_counter()
        row = {"seconds": self.seconds, "auc": metrics.auc(self._y, predict(self._X))}
        print(json.dumps(row), flush=True)
        self._start += time.perf_counter() - before


def _rows() -> tuple[np.ndarray, ...]:
    X, Y = SusyLike(NUM_ROWS).arrays()
    X_test, Y_test = SusyLike(HELD_OUT, start=NUM_ROWS).arrays()
    centre, spread = X[:HELD_OUT].mean(axis=0), X[:HELD_OUT].std(axis=0)
    for part in (X, X_test):
        part -= centre
        part /= spread
    return X, Y, X_test, Y_test[:, 0].astype(int)


def _kernel(dtype: type = np.float64) -> gpflow.kernels.Kernel:
    return gpflow.kernels.SquaredExponential(dtype(4.0), lengthscales=np.full(18, 18**0.5, dtype))


def _columns(p: np.ndarray) -> np.ndarray:
    p = np.asarray(p, np.float64).reshape(-1)
    return np.column_stack([1 - p, p])


def _ours(method: str, X: np.ndarray, Y: np.ndarray, clock: Clock) -> None:
    Z = gb.inducing_points.kmeans(X, NUM_POINTS)
    model = gb.models.BSVM(_kernel(), gb.likelihoods.Hinge(), Z)

    def look(*_: object) -> None:
        clock.score(lambda X: _columns(gb.prediction.predict_probabilities(model, X)))
        if clock.seconds > SECONDS:
            raise KeyboardInterrupt

    begin = choosing._begin

    def begin_and_look(*arguments: object) -> None:
        begin(*arguments)
        look()

    choosing._begin, how = begin_and_look, {"callback": look, "progress": False}
    with contextlib.suppress(KeyboardInterrupt):
        if method == "fit":
            gb.fit(model, (X, Y), **how)
        else:
            size = int(method.split()[-1])
            every = max(10, 100_000 // size)
            svi = gb.inference.SVI(max_steps=10**6, batch_size=size, record_every=every)
            svi.run(model, (X, Y), **how)


def _svgp(method: str, X: np.ndarray, Y: np.ndarray, clock: Clock) -> None:
    name, batch, rate = method.removeprefix("SVGP ").split(", ")
    dtype, size = getattr(np, name), int(batch.split()[1])
    with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
        Z = gb.inducing_points.kmeans(X, NUM_POINTS).astype(dtype)
        model = gpflow.models.SVGP(
            _kernel(dtype), gpflow.likelihoods.Bernoulli(), Z, num_data=len(X)
        )
        optimizer = gpflow.optimizers.NaturalGradient(float(rate.split()[1]))

        # To rewrite GPflow's sources takes longer than to trace them.
        @tf.autograph.experimental.do_not_convert
        def step(X: tf.Tensor, Y: tf.Tensor) -> None:
            optimizer.minimize(lambda: model.training_loss((X, Y)), [(model.q_mu, model.q_sqrt)])

        @tf.function
        def steps(X: tf.Tensor, Y: tf.Tensor) -> None:
            for part in tf.range(len(X) // size):
                rows = slice(part * size, (part + 1) * size)
                step(X[rows], Y[rows])

        def predict(X: np.ndarray) -> np.ndarray:
            parts = (X[i : i + 10_000].astype(dtype) for i in range(0, len(X), 10_000))
            return _columns(np.concatenate([model.predict_y(part)[0].numpy() for part in parts]))

        block = max(10 * size, 200_000)
        while clock.seconds < SECONDS:  # the rows are in no order
            start = np.random.default_rng(0).integers(0, len(X) - block)
            for first in range(start, len(X) - block, block):
                part = slice(first, first + block)
                steps(tf.constant(X[part], dtype), tf.constant(Y[part], dtype))
                clock.score(predict)
                if clock.seconds > SECONDS or not np.isfinite(model.q_mu.numpy()).all():
                    return


def _nystroem(X: np.ndarray, Y: np.ndarray, clock: Clock) -> None:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier

    some = np.random.default_rng(0).choice(len(X), 20_000, replace=False)
    features = Nystroem(gamma=0.5 / 18, n_components=NUM_POINTS, random_state=0).fit(X[some])
    model = SGDClassifier(loss="log_loss", alpha=1e-6, average=True, random_state=0)
    for first in range(0, len(X), 100_000):
        part = slice(first, first + 100_000)
        model.partial_fit(features.transform(X[part]), Y[part, 0], classes=[0, 1])
        clock.score(lambda X: model.predict_proba(features.transform(X)))
        if clock.seconds > SECONDS:
            return


def _boosting(X: np.ndarray, Y: np.ndarray, clock: Clock) -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(random_state=0, warm_start=True, max_iter=1)
    for trees in (10, 30, 100):
        model.set_params(max_iter=trees).fit(X, Y[:, 0])
        clock.score(model.predict_proba)


def main(method: str) -> None:
    X, Y, X_test, y_test = _rows()
    clock = Clock(X_test, y_test)
    if method.startswith("SVGP"):
        _svgp(method, X, Y, clock)
    elif method == "Nystroem + SGD":
        _nystroem(X, Y, clock)
    elif method == "HistGradientBoosting":
        _boosting(X, Y, clock)
    else:
        _ours(method, X, Y, clock)


if __name__ == "__main__":
    main(sys.argv[1])
