"""Wenzel et al. (2017), Fig. 1: error on held-out rows against training time, waveform.

2000 training rows, 3000 held out, squared exponential with theta = 5, variance 1 throughout; for
sparse models 100 k-means points, for stochastic ones a batch of 10 as in the paper and of 100. A
row is a moment of a fit. `GaussianProcessClassifier` and SVC cannot be looked at on their way: they
have one moment for each of a growing number of training rows. `seconds` leave out tracing and the
measuring of errors; the ECM's machine is that of all points, as in Henao et al. (2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import gpflow
import numpy as np
import tensorflow as tf
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.svm import SVC

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, ECM, SVI
from gpflow_bsvm.prediction import predict_marginals

from ._common import make, natgrad_step, paper_kernel, seconds, standardised
from ._error_traces import Trace, our_trace, their_trace

TRAINING_ROWS = 2000
SOME_ROWS = (100, 250, 500, 1000, 2000)
GAMMA = (0.01, 0.1)


def run() -> Iterator[dict]:
    X, Y = standardised("waveform")
    data, test = (X[:TRAINING_ROWS], Y[:TRAINING_ROWS]), (X[TRAINING_ROWS:], Y[TRAINING_ROWS:])
    Z = gb.inducing_points.kmeans(data[0], 100)
    for method, trace in _methods(data, Z).items():
        for moment, error in trace(test):
            yield {"method": method, "seconds": moment, "error": error}


def _methods(data: tuple, Z: np.ndarray) -> dict[str, Callable]:
    exact, augmented = (
        partial(gb.likelihoods.Hinge, 2.0, bound=name) for name in ("exact", "augmented")
    )
    cavi, ecm = CAVI(), ECM(max_steps=50)
    methods = {
        "B-BSVM, exact": partial(_batch, data, exact, cavi),
        "B-BSVM, augmented": partial(_batch, data, augmented, cavi),
        "ECM (batch)": partial(_batch, data, augmented, ecm),
        "S-BSVM, exact, CAVI": partial(_sparse, data, Z, exact, cavi),
        "S-BSVM, augmented, CAVI": partial(_sparse, data, Z, augmented, cavi),
        "ECM (sparse)": partial(_sparse, data, Z, augmented, ecm),
    }
    for size in (10, 100):
        svi = SVI(batch_size=size, max_steps=2000, record_every=20)
        methods[f"S-BSVM, exact, SVI {size}"] = partial(_sparse, data, Z, exact, svi)
        for gamma in GAMMA:
            name = f"SVGP, natural gradients {gamma}, batch {size}"
            methods[name] = partial(_svgp, data, Z, gamma, size)
    gpc = GaussianProcessClassifier(RBF(5 / np.sqrt(2)), optimizer=None)
    svc = SVC(C=2.0, gamma=1 / 25)
    methods["GaussianProcessClassifier"] = partial(_growing, data, gpc)
    methods["SVC"] = partial(_growing, data, svc)
    return methods


def _error(model, test: tuple, predict: Callable | None = None) -> float:
    mean = predict(test[0]) if predict else predict_marginals(model, test[0])[0]
    return float(np.mean((np.asarray(mean) > 0) != test[1]))


def _batch(data: tuple, likelihood: Callable, algorithm, test: tuple) -> Trace:
    model = gb.models.BatchBSVM(data, paper_kernel(), likelihood())
    return our_trace(model, algorithm, data, lambda: _error(model, test))


def _sparse(data: tuple, Z: np.ndarray, likelihood: Callable, algorithm, test: tuple) -> Trace:
    model = make(gb.models.BSVM, likelihood(), Z, len(data[0]))
    return our_trace(model, algorithm, data, lambda: _error(model, test))


def _svgp(data: tuple, Z: np.ndarray, gamma: float, size: int, test: tuple) -> Trace:
    model = make(gpflow.models.SVGP, gpflow.likelihoods.Bernoulli(), Z, len(data[0]))
    predict = tf.function(lambda X: model.predict_f(X)[0])
    index = np.random.default_rng(0).integers(0, len(data[0]), (2000, size))
    return their_trace(
        natgrad_step(model, gamma),
        data,
        lambda: _error(model, test, predict),
        index,
        every=20,
        failed=0.5,  # no positive definite q: guessing, from here on
    )


def _growing(data: tuple, model, test: tuple) -> Iterator[tuple[float, float]]:
    for size in SOME_ROWS:
        taken = seconds(model.fit, data[0][:size], data[1][:size, 0])
        yield taken, float(np.mean(model.predict(test[0]) != test[1][:, 0]))
