"""Wenzel et al. (2017), Fig. 1: error on held-out rows against training time, waveform.

2000 training rows, 3000 held out, squared exponential with theta = 5, variance 1 throughout; for
sparse models 100 k-means points, for stochastic ones a batch of 10 as in the paper and of 100. A
row is a moment of a fit. `GaussianProcessClassifier` and SVC cannot be looked at on their way: they
have one moment for each of a growing number of training rows. `seconds` leave out tracing and the
measuring of errors; the ECM's machine is that of all points, as in Henao et al. (2014).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from functools import partial

import gpflow
import numpy as np
import tensorflow as tf
from common import natgrad_step, paper_kernel, standardised
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.svm import SVC

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, ECM, SVI
from gpflow_bsvm.prediction import predict_marginals

TRAINING_ROWS = 2000
SOME_ROWS = (100, 250, 500, 1000, 2000)
GAMMA = (0.01, 0.1)


def run() -> list[dict]:
    return list(_rows())


def _rows() -> Iterator[dict]:
    X, Y = standardised("waveform")
    data, test = (X[:TRAINING_ROWS], Y[:TRAINING_ROWS]), (X[TRAINING_ROWS:], Y[TRAINING_ROWS:])
    Z = gb.inducing_points.kmeans(data[0], 100)
    for method, make in _methods(data, Z).items():
        for seconds, error in make(test):
            yield {"method": method, "seconds": seconds, "error": error}


def _methods(data: tuple, Z: np.ndarray) -> dict[str, Callable]:
    exact, augmented = (
        partial(gb.likelihoods.Hinge, 2.0, bound=name) for name in ("exact", "augmented")
    )
    cavi, ecm = CAVI(), ECM(max_iter=50)
    methods = {
        "B-BSVM, exact": partial(_batch, data, exact, cavi),
        "B-BSVM, augmented": partial(_batch, data, augmented, cavi),
        "ECM (batch)": partial(_batch, data, augmented, ecm),
        "S-BSVM, exact, CAVI": partial(_sparse, data, Z, exact, cavi),
        "S-BSVM, augmented, CAVI": partial(_sparse, data, Z, augmented, cavi),
        "ECM (sparse)": partial(_sparse, data, Z, augmented, ecm),
    }
    for size in (10, 100):
        svi = SVI(batch_size=size, num_steps=2000, record_every=20)
        methods[f"S-BSVM, exact, SVI {size}"] = partial(_sparse, data, Z, exact, svi)
        for gamma in GAMMA:
            name = f"SVGP, natural gradients {gamma}, batch {size}"
            methods[name] = partial(_svgp, data, Z, gamma, size)
    gpc = GaussianProcessClassifier(RBF(5 / np.sqrt(2)), optimizer=None)
    svc = SVC(C=2.0, gamma=1 / 25)
    methods["GaussianProcessClassifier"] = partial(_growing, data, gpc)
    methods["SVC"] = partial(_growing, data, svc)
    return methods


def _error(model, test: tuple) -> float:
    return float(np.mean((predict_marginals(model, test[0])[0] > 0) != test[1]))


def _batch(data: tuple, likelihood: Callable, algorithm, test: tuple) -> list[tuple]:
    model = gb.models.BatchBSVM(data, paper_kernel(), likelihood())
    return _traced(model, data, algorithm, test)


def _sparse(data: tuple, Z: np.ndarray, likelihood: Callable, algorithm, test: tuple):
    model = gb.models.BSVM(paper_kernel(), likelihood(), Z, num_data=len(data[0]))
    return _traced(model, data, algorithm, test)


def _traced(model, data: tuple, algorithm, test: tuple) -> list[tuple]:
    start, trace = (model.q_mu.numpy(), model.q_sqrt.numpy()), []
    few = {"num_steps": 40} if isinstance(algorithm, SVI) else {"max_iter": 1}
    dataclasses.replace(algorithm, **few).run(model, data, progress=False)
    if isinstance(algorithm, CAVI):  # whose last sweeps have other products than the first
        for products in ("float32", "float64"):
            CAVI(max_iter=1, products=products).run(model, data, progress=False)
    model.q_mu.assign(start[0])
    model.q_sqrt.assign(start[1])

    def callback(_: int, history: gb.inference.History) -> None:
        trace.append((history.seconds[-1], _error(model, test)))

    algorithm.run(model, data, progress=False, callback=callback)
    return trace


def _svgp(data: tuple, Z: np.ndarray, gamma: float, size: int, test: tuple) -> list[tuple]:
    model = gpflow.models.SVGP(
        paper_kernel(), gpflow.likelihoods.Bernoulli(), Z.copy(), num_data=len(data[0])
    )
    step, predict = natgrad_step(model, gamma), tf.function(lambda X: model.predict_f(X)[0])
    index = np.random.default_rng(0).integers(0, len(data[0]), (2000, size))
    rows = [tuple(tf.constant(part[i]) for part in data) for i in index]
    step(*rows[0])
    predict(test[0])
    trace, total = [], 0.0
    for first in range(0, len(rows), 20):
        start = time.perf_counter()
        try:
            for batch in rows[first : first + 20]:
                step(*batch)
        except tf.errors.InvalidArgumentError:  # no positive definite q: guessing, from here on
            return [*trace, (total, 0.5)]
        total += time.perf_counter() - start
        trace.append((total, float(np.mean((predict(test[0]).numpy() > 0) != test[1]))))
    return trace


def _growing(data: tuple, model, test: tuple) -> Iterator[tuple]:
    for size in SOME_ROWS:
        start = time.perf_counter()
        model.fit(data[0][:size], data[1][:size, 0])
        seconds = time.perf_counter() - start
        yield seconds, float(np.mean(model.predict(test[0]) != test[1][:, 0]))
