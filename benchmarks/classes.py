"""One multi-class step at batch 500 against GPflow's, and how its cost grows with the classes.

The inputs are those of letter (16 columns); the labels are k-means clusters of them, so that there
can be any number of classes on the same inputs.
"""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import numpy as np
import tensorflow as tf
from common import natgrad_step, seconds, standardised
from sklearn.cluster import KMeans

import gpflow_bsvm as gb

REPEATS, BATCH, NUM_INDUCING, RATE = 9, 500, 100, 0.02
CLASSES = (3, 10, 26, 100)


def run() -> list[dict]:
    X, _ = standardised("letter")
    X = X[:10_000]
    Z = gb.inducing_points.kmeans(X, NUM_INDUCING)
    rows = []
    for num_classes in CLASSES:
        labels = KMeans(num_classes, n_init=1, random_state=0).fit_predict(X)
        timers = _timers(X, labels[:, None].astype(float), Z, num_classes)
        for timer in timers.values():
            timer()  # traces
        for repeat in range(REPEATS):
            rows += [
                {"classes": num_classes, "method": name, "repeat": repeat, "step_us": 1e6 * timer()}
                for name, timer in timers.items()
            ]
    return rows


def _timers(X: np.ndarray, Y: np.ndarray, Z: np.ndarray, C: int) -> dict[str, Callable]:
    ours, theirs = gb.likelihoods, gpflow.likelihoods
    num_steps = 100 if C < 50 else 30
    return {
        "SVI, exact": _ours(ours.CrammerSinger(C), X, Y, Z, num_steps),
        "SVI, published": _ours(ours.CrammerSinger(C, bound="wistuba2018"), X, Y, Z, num_steps),
        "SVI, one-vs-rest": _ours(ours.OneVsRest(C), X, Y, Z, num_steps),
        "GPflow, Softmax": _theirs(theirs.Softmax(C), X, Y, Z, num_steps // 5),
        "GPflow, RobustMax": _theirs(theirs.MultiClass(C), X, Y, Z, num_steps // 5),
    }


def _model(cls: type, likelihood: gpflow.likelihoods.Likelihood, Z: np.ndarray, num_data: int):
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=4.0)
    return cls(
        kernel, likelihood, Z.copy(), num_latent_gps=likelihood.latent_dim, num_data=num_data
    )


def _ours(likelihood, X, Y, Z, num_steps: int) -> Callable:
    """Seconds a step of a whole fit: start-up, projection and records included."""
    svi = gb.inference.SVI(batch_size=BATCH, num_steps=num_steps, learning_rate=RATE)

    def timer() -> float:
        model = _model(gb.models.BSVM, likelihood, Z, len(X))
        return seconds(lambda: svi.run(model, (X, Y), progress=False)) / num_steps

    return timer


def _theirs(likelihood, X, Y, Z, num_steps: int) -> Callable:
    """A compiled step, called once a minibatch. The batches are made beforehand."""
    labels = Y.astype(int)  # its Softmax takes no others
    model = _model(gpflow.models.SVGP, likelihood, Z, len(X))
    step = natgrad_step(model, RATE / 100)  # at our size its posterior turns to NaN
    index = np.random.default_rng(0).integers(0, len(X), (num_steps, BATCH))
    batches = [(tf.constant(X[i]), tf.constant(labels[i])) for i in index]
    return lambda: seconds(lambda: [step(*batch) for batch in batches]) / num_steps
