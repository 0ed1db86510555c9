"""Held-out error against training time on real multi-class data: same split, Z and kernel.

GPflow's peers are given several optimisers and step sizes, and each of its likelihoods the best of
them in hindsight. Natural gradients on RobustMax fail within some steps at every constant size from
1 to 0.01: theirs grow from 1 / N by a fifth at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import gpflow
import numpy as np
import tensorflow as tf
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb
from gpflow_bsvm.prediction import predict_probabilities

from ._common import numbered, usual_kernel
from ._error_traces import Trace, our_trace, their_trace

SETS = ("digits", "satimage", "pendigits", "letter")
SPLITS, NUM_INDUCING, BATCH, NUM_STEPS, RECORD = 3, 100, 500, 600, 20
#: Adam's and natural gradients' step sizes.
ADAM, NATURAL = (0.1, 0.03), (0.1, 0.03)


def run() -> Iterator[dict]:
    for name in SETS:
        for split in range(SPLITS):
            for method, setting, trace in _traces(*_parts(name, split)):
                about = {"data": name, "split": split, "method": method, "setting": setting}
                for seconds, error in trace:
                    yield {**about, "seconds": seconds, "error": error}


def _parts(name: str, split: int) -> tuple[np.ndarray, ...]:
    """:return: X, Y and Z, and the held-out X and y."""
    X, y = numbered(name)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=split)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    return X, y[:, None], gb.inducing_points.kmeans(X, NUM_INDUCING, seed=split), X_test, y_test


def _traces(X, Y, Z, X_test, y_test) -> Iterator[tuple[str, str, Trace]]:
    C = int(Y.max()) + 1
    ours, theirs = gb.likelihoods, gpflow.likelihoods
    svi = gb.inference.SVI(batch_size=BATCH, max_steps=NUM_STEPS, record_every=RECORD)
    index = np.random.default_rng(0).integers(0, len(X), (NUM_STEPS, BATCH))

    def error(predict: Callable) -> float:
        return float(np.mean(np.asarray(predict(X_test)).argmax(axis=1) != y_test))

    for setting, algorithm in {"CAVI": gb.inference.CAVI(), "SVI": svi}.items():
        for method, likelihood in {
            "exact": ours.CrammerSinger(C),
            "exact, penalty 8": ours.CrammerSinger(C, penalty=8.0),
            "published": ours.CrammerSinger(C, bound="wistuba2018"),
            "one-vs-rest": ours.OneVsRest(C),
        }.items():
            model = _model(gb.models.BSVM, likelihood, Z, X)
            held_out = partial(error, partial(predict_probabilities, model))
            yield method, setting, our_trace(model, algorithm, (X, Y.astype(float)), held_out)
    for method, likelihood in {
        "Softmax": theirs.Softmax(C),
        "RobustMax": theirs.MultiClass(C),
    }.items():
        ramp = method == "RobustMax"
        steps = {f"Adam {rate}": _adam(rate) for rate in ADAM}
        steps |= {f"NaturalGradient {gamma}": _natural(gamma, ramp) for gamma in NATURAL}
        for setting, make_step in steps.items():
            model = _model(gpflow.models.SVGP, likelihood, Z, X)
            held_out = partial(error, tf.function(lambda X, model=model: model.predict_y(X)[0]))
            step = _compiled(model, make_step(model))
            trace = their_trace(step, (X, Y), held_out, index, every=RECORD, failed=1.0)
            yield method, setting, trace


def _model(cls: type, likelihood, Z: np.ndarray, X: np.ndarray) -> gpflow.models.SVGP:
    latents = {"num_latent_gps": likelihood.latent_dim, "num_data": len(X)}
    model = cls(usual_kernel(X.shape[1]), likelihood, Z.copy(), **latents)
    gpflow.set_trainable(model.kernel, False)
    gpflow.set_trainable(model.inducing_variable, False)
    return model


def _compiled(model: gpflow.models.SVGP, minimize: Callable) -> Callable:
    @tf.function
    def step(X: tf.Tensor, Y: tf.Tensor) -> None:
        minimize(lambda: model.training_loss((X, Y)))

    return step


def _adam(rate: float) -> Callable:
    def make(model: gpflow.models.SVGP) -> Callable:
        optimizer = gpflow.keras.tf_keras.optimizers.Adam(rate)
        optimizer.build(model.trainable_variables)
        return lambda loss: optimizer.minimize(loss, model.trainable_variables)

    return make


def _natural(most: float, ramp: bool) -> Callable:
    def make(model: gpflow.models.SVGP) -> Callable:
        gamma = tf.Variable(1 / model.num_data if ramp else most, dtype=tf.float64)
        optimizer = gpflow.optimizers.NaturalGradient(gamma)

        def minimize(loss: Callable) -> None:
            optimizer.minimize(loss, [(model.q_mu, model.q_sqrt)])
            gamma.assign(tf.minimum(1.2 * gamma, most))

        return minimize

    return make
