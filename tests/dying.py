"""A fit that dies, and what it leaves."""

import functools

import numpy as np
import pytest
from helpers import make_data, make_model, state

from gpflow_bsvm.inference import CAVI, ECM, ML2, SVI, VEM, Adaptive
from gpflow_bsvm.sampling import HMC, Gibbs, samples

MINIBATCHES = {"batch_size": 7, "max_steps": 50, "record_every": 10}
ALGORITHMS = {
    "CAVI": CAVI(max_steps=12, tol=1e-9),
    "CAVI, in single precision": CAVI(max_steps=12, tol=1e-6),
    "SVI": SVI(**MINIBATCHES),
    "SVI, adaptive": SVI(learning_rate=Adaptive(5), **MINIBATCHES),
    "VEM": VEM(max_steps=5, tol=0),
    "ML2": ML2(**MINIBATCHES),
    "ECM": ECM(max_steps=12),
}
SAMPLERS = {"Gibbs": Gibbs(60, 25, 2), "HMC": HMC(60, 25, 2)}


def slow(names, *some):
    """Those that trace long are seen in the slow tests only."""
    return [pytest.param(n, marks=pytest.mark.slow) if n in some else n for n in names]


class Death(Exception):
    """Of a process: what was not stored is lost."""


def die_at(record):
    def callback(step, history):
        if len(history) == record:
            raise Death

    return callback


def everything(model, history):
    """What a fit leaves behind, but for the time that it took."""
    values = [p.numpy() for p in model.parameters]
    learned = [np.stack(v) for v in history.hyperparameters.values()]
    records = (history.step, history.elbo, history.learning_rate, history.converged)
    return [*values, *map(np.array, records), *learned]


def assert_equal(one, two):
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def interrupt_at(monkeypatch, number):
    """Ctrl-C after so many blocks."""
    advance, calls = samples._Chains.advance, iter(range(1000))

    def interrupted(run):
        if next(calls) == number:
            raise KeyboardInterrupt
        return advance(run)

    monkeypatch.setattr(samples._Chains, "advance", interrupted)


def resumed(data, directory):
    """:return: number of the first record that was not stored."""
    seen, model = [], make_model(data)
    ALGORITHMS["CAVI"].run(
        model, data, checkpoint=directory, callback=lambda step, _: seen.append(step)
    )
    assert_equal(state(model), whole())
    return seen[0]


@functools.cache
def whole():
    """:return: the state of a fit to `make_data()` that nothing has disturbed."""
    data = make_data()
    model = make_model(data)
    ALGORITHMS["CAVI"].run(model, data)
    return state(model)
