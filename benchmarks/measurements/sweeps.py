"""Full-batch fits on waveform: time to within 0.1 % of each method's own final ELBO.

Ours is the whole fit from the call on: projection, and an ELBO with every sweep. GPflow's time is
that of its steps alone ("steps"), and with the compiled ELBO that a stopping rule needs after each
("steps + ELBO"); its best step size is chosen afterwards.
"""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf

import gpflow_bsvm as gb

from ._common import first_within, make, natgrad_step, reset, seconds, waveform

REPEATS = 9
GAMMAS = (1.0, 0.9, 0.7, 0.5)
KERNELS = [
    {"variance": variance, "theta": theta} for variance in (1.0, 4.0) for theta in (5.0, 7.07)
]

LIKELIHOODS = (
    gb.likelihoods.Hinge(bound="exact"),
    gb.likelihoods.Hinge(bound="augmented"),
    gb.likelihoods.Probit(),
)


def run() -> list[dict]:
    X, Y, Z = waveform()
    rows = []
    for kernel in KERNELS:
        gpflow_fits = _gpflow_fits(X, Y, Z, kernel)
        for likelihood in LIKELIHOODS:  # traces
            _ours(likelihood, X, Y, Z, kernel)
        for repeat in range(REPEATS):
            found = [_ours(likelihood, X, Y, Z, kernel) for likelihood in LIKELIHOODS]
            found += [row for fit in gpflow_fits for row in fit()]
            rows += [{**kernel, "repeat": repeat, **row} for row in found]
    return rows


def _ours(likelihood, X, Y, Z, kernel: dict) -> dict:
    model = make(gb.models.BSVM, likelihood, Z, len(X), **kernel)
    history = gb.inference.CAVI(tol=1e-6, max_steps=1000).run(model, (X, Y), progress=False)
    sweep = first_within(history.elbo, history.elbo[-1])
    name = f"CAVI, {type(likelihood).__name__} {getattr(likelihood, 'bound', '')}".strip()
    ms = 1e3 * history.seconds[sweep]
    return {"method": name, "steps": sweep + 1, "ms": ms, "elbo": history.elbo[-1]}


def _gpflow_fits(X, Y, Z, kernel: dict) -> list:
    data = tf.constant(X), tf.constant(Y)
    return [_gpflow_fit(gamma, data, Z, kernel) for gamma in GAMMAS]


def _gpflow_fit(gamma: float, data: tuple, Z: np.ndarray, kernel: dict):
    model = make(gpflow.models.SVGP, gpflow.likelihoods.Bernoulli(), Z, len(data[0]), **kernel)
    step, elbo = natgrad_step(model, gamma), tf.function(lambda: model.elbo(data))
    step(*data), elbo()  # traces
    reset(model)
    trace = []
    for _ in range(25):
        step(*data)
        trace.append(float(elbo()))
    num_steps = first_within(trace, trace[-1]) + 1

    def fit() -> list[dict]:
        reset(model)
        steps = sum(seconds(step, *data) for _ in range(num_steps))
        watched = steps + sum(seconds(lambda: elbo().numpy()) for _ in range(num_steps))
        row = {"steps": num_steps, "elbo": trace[-1]}
        name = f"GPflow Bernoulli, step {gamma}"
        return [
            {"method": f"{name}, steps", "ms": 1e3 * steps, **row},
            {"method": f"{name}, steps + ELBO", "ms": 1e3 * watched, **row},
        ]

    return fit
