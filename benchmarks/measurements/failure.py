"""GPflow's known failure of natural gradients on minibatches, and every step size of ours.

N = 20 000, batch 200, M = 200: `Bernoulli` floors its probabilities at 1e-3, its log-likelihood is
not concave, and in the tails the precision of the step goes negative.
"""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from sklearn.datasets import make_classification

import gpflow_bsvm as gb

from ._common import natgrad_step

NUM_STEPS, BATCH, M = 500, 200, 200
STEPS = (0.01, 0.03, 0.1, 0.3, 1.0)


def run() -> list[dict]:
    X, y = make_classification(
        20_000, 10, n_informative=6, n_redundant=0, class_sep=1.5, random_state=0
    )
    Y, Z = y[:, None].astype(float), gb.inducing_points.kmeans(X, M)
    rows = []
    for step in STEPS:
        for bound in ("augmented", "exact"):
            hinge = gb.likelihoods.Hinge(bound=bound)
            rows.append(_ours(f"SVI, Hinge {bound}", hinge, X, Y, Z, step))
        rows.append(_ours("SVI, Probit", gb.likelihoods.Probit(), X, Y, Z, step))
        rows.append(_theirs("GPflow, Bernoulli", gpflow.likelihoods.Bernoulli(), X, Y, Z, step))
        rows.append(_theirs("GPflow, unfloored probit", gb.likelihoods.Probit(), X, Y, Z, step))
    return rows


def _kernel() -> gpflow.kernels.Kernel:
    return gpflow.kernels.SquaredExponential(1.0, lengthscales=3.0)


def _ours(name: str, likelihood, X, Y, Z, step: float) -> dict:
    model = gb.models.BSVM(_kernel(), likelihood, Z.copy(), num_data=len(X))
    svi = gb.inference.SVI(batch_size=BATCH, max_steps=NUM_STEPS, learning_rate=step)
    history = svi.run(model, (X, Y), progress=False)
    return {**_row(name, step, history.step[-1], model, X, Y), "error": ""}


def _theirs(name: str, likelihood, X, Y, Z, step: float) -> dict:
    model = gpflow.models.SVGP(_kernel(), likelihood, Z.copy(), num_data=len(X))
    update, random = natgrad_step(model, step), np.random.default_rng(0)
    error, done = "", 0
    try:
        for _ in range(NUM_STEPS):
            index = random.integers(0, len(X), BATCH)
            update(tf.constant(X[index]), tf.constant(Y[index]))
            done += 1
    except tf.errors.InvalidArgumentError as failure:
        error = "NaN" if "NaN" in str(failure) else "Cholesky factor failed"
    return {**_row(name, step, done, model, X, Y), "error": error}


def _row(name: str, step: float, done: int, model, X, Y) -> dict:
    p = model.predict_y(X[:5000])[0].numpy()
    return {
        "method": name,
        "learning_rate": step,
        "steps_done": done,
        "steps_asked": NUM_STEPS,
        "training_error": float(np.mean((p > 0.5) != (Y[:5000] > 0.5))),
    }
