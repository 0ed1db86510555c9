"""A fork of a process that ran TensorFlow raises an error where it would hang."""

import os

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from compiled_kernels import SE

import gpflow_bsvm as gb
from gpflow_bsvm.engine.shared_graph import Compiled

X = np.linspace(-1.0, 1.0, 6)[:, None]
Y = np.sign(X)

BEGINNINGS = {
    "fit": lambda: gb.BSVMClassifier().fit(X, Y[:, 0]),
    "sparse model": lambda: gb.models.BSVM(SE(), gb.likelihoods.Hinge(), X[:2]),
    "batch model": lambda: gb.models.BatchBSVM((X, Y), SE(), gb.likelihoods.Hinge()),
    "linear model": lambda: gb.models.LinearBSVM(1, gb.likelihoods.Hinge()),
}


@pytest.mark.parametrize("begin", BEGINNINGS.values(), ids=BEGINNINGS)
def test_no_fit_begins_in_a_fork(monkeypatch, begin):
    monkeypatch.setattr("gpflow_bsvm.engine.structure._FORKED", [True])
    monkeypatch.setattr(gpflow.models.SVGP, "__init__", None)  # it would hang: it is not reached
    with pytest.raises(RuntimeError, match="before this process was forked"):
        begin()


def test_a_fork_raises_instead_of_hanging(monkeypatch):
    bound = Compiled(lambda kernel, X: kernel(X)).bind(gpflow.kernels.SquaredExponential())
    monkeypatch.setattr("gpflow_bsvm.engine.structure._FORKED", [True])
    with pytest.raises(RuntimeError, match="before this process was forked"):
        bound(tf.zeros([2, 1], tf.float64))
    with pytest.raises(RuntimeError, match="before this process was forked"):
        Compiled(lambda kernel: kernel.variance).bind(gpflow.kernels.SquaredExponential())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_raises_if_a_model_was_only_made_before():
    """As when a server loads a model, and then forks its workers."""
    kernel = gpflow.kernels.SquaredExponential()
    child = os.fork()
    if not child:
        try:
            Compiled(lambda kernel: kernel.variance).bind(kernel)
        except RuntimeError as error:
            os._exit(int("after it has forked its workers" not in str(error)))
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
