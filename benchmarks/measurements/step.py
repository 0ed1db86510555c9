"""One SVI step against one natural-gradient step of GPflow's, on waveform, M = 100."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import gpflow
import numpy as np
import tensorflow as tf

import gpflow_bsvm as gb

from ._common import make, natgrad_timer, repeated, seconds, svi_timer, waveform

REPEATS, RATE = 9, 0.02


def run() -> Iterator[dict]:
    X, Y, Z = waveform()
    for batch_size in (10, 100, 1000):
        for row in repeated(_timers((X, Y), Z, batch_size), REPEATS):
            yield {"batch": batch_size, **row}


def _timers(data: tuple, Z: np.ndarray, batch_size: int) -> dict[str, Callable]:
    num_data, num_steps = len(data[0]), 2000 if batch_size < 1000 else 500
    svi = gb.inference.SVI(batch_size=batch_size, max_steps=num_steps, learning_rate=RATE)
    index = np.random.default_rng(0).integers(0, num_data, (num_steps // 10, batch_size))

    def ours(bound: str) -> Callable:
        hinge = gb.likelihoods.Hinge(bound=bound)
        return svi_timer(lambda: make(gb.models.BSVM, hinge, Z, num_data), data, svi)

    def theirs() -> gpflow.models.SVGP:
        return make(gpflow.models.SVGP, gpflow.likelihoods.Bernoulli(), Z, num_data)

    return {
        "SVI, augmented": ours("augmented"),
        "SVI, exact": ours("exact"),
        "GPflow, one call a step": natgrad_timer(theirs(), data, index, RATE),
        "GPflow, loop in a graph": _looped(theirs(), data, index),
    }


def _looped(model: gpflow.models.SVGP, data: tuple, index: np.ndarray) -> Callable:
    """Its best: the whole loop compiled, as ours is."""
    optimizer = gpflow.optimizers.NaturalGradient(RATE)
    variables = [(model.q_mu, model.q_sqrt)]
    X, Y, rows = (tf.constant(part) for part in (*data, index))

    @tf.function
    def steps() -> None:
        for t in tf.range(len(index)):
            batch = tf.gather(X, rows[t]), tf.gather(Y, rows[t])
            optimizer.minimize(lambda batch=batch: model.training_loss(batch), variables)

    return lambda: seconds(steps) / len(index)
