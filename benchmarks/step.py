"""One SVI step against one natural-gradient step of GPflow's, on waveform, M = 100."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from common import make, natgrad_step, seconds, waveform

import gpflow_bsvm as gb

REPEATS = 9


def run() -> list[dict]:
    X, Y, Z = waveform()
    rows = []
    for batch_size in (10, 100, 1000):
        timers = _timers(X, Y, Z, batch_size)
        for timer in timers.values():
            timer()  # traces
        for repeat in range(REPEATS):
            rows += [
                {"batch": batch_size, "method": name, "repeat": repeat, "step_us": 1e6 * timer()}
                for name, timer in timers.items()
            ]
    return rows


def _timers(X: np.ndarray, Y: np.ndarray, Z: np.ndarray, batch_size: int) -> dict:
    num_steps = 2000 if batch_size < 1000 else 500
    return {
        "SVI, augmented": lambda: _ours("augmented", X, Y, Z, batch_size, num_steps),
        "SVI, exact": lambda: _ours("exact", X, Y, Z, batch_size, num_steps),
        "GPflow, one call a step": _called(X, Y, Z, batch_size, num_steps // 10),
        "GPflow, loop in a graph": _looped(X, Y, Z, batch_size, num_steps // 10),
    }


def _ours(bound: str, X, Y, Z, batch_size: int, num_steps: int) -> float:
    """Seconds a step of a whole fit: start-up, projection and records included."""
    model = make(gb.models.BSVM, gb.likelihoods.Hinge(bound=bound), Z, len(X))
    svi = gb.inference.SVI(batch_size=batch_size, num_steps=num_steps, learning_rate=0.02)
    return seconds(lambda: svi.run(model, (X, Y), progress=False)) / num_steps


def _batches(X: np.ndarray, Y: np.ndarray, batch_size: int, num: int) -> list:
    index = np.random.default_rng(0).integers(0, len(X), (num, batch_size))
    return [(tf.constant(X[i]), tf.constant(Y[i])) for i in index]


def _called(X, Y, Z, batch_size: int, num_steps: int):
    """The usual way: a compiled step, called once a minibatch. The batches are made beforehand."""
    model = make(gpflow.models.SVGP, gpflow.likelihoods.Bernoulli(), Z, len(X))
    step, batches = natgrad_step(model, 0.02), _batches(X, Y, batch_size, num_steps)

    def steps() -> None:
        for batch in batches:
            step(*batch)

    return lambda: seconds(steps) / num_steps


def _looped(X, Y, Z, batch_size: int, num_steps: int):
    """Its best: the whole loop compiled, as ours is."""
    model = make(gpflow.models.SVGP, gpflow.likelihoods.Bernoulli(), Z, len(X))
    optimizer = gpflow.optimizers.NaturalGradient(0.02)
    variables = [(model.q_mu, model.q_sqrt)]
    index = tf.constant(np.random.default_rng(0).integers(0, len(X), (num_steps, batch_size)))
    X_, Y_ = tf.constant(X), tf.constant(Y)

    @tf.function
    def steps() -> None:
        for t in tf.range(num_steps):
            batch = tf.gather(X_, index[t]), tf.gather(Y_, index[t])
            optimizer.minimize(lambda batch=batch: model.training_loss(batch), variables)

    return lambda: seconds(steps) / num_steps
