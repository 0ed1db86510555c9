"""A model that has what `engine.contracts.Model` lists, and no more, is fitted and predicts."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import gpflow_bsvm as gb
from gpflow_bsvm.engine.contracts import Model
from gpflow_bsvm.inference import CAVI, SVI, VEM, Streaming

MEMBERS = {name for name in {*vars(Model), *Model.__annotations__} if not name.startswith("_")}
X = np.random.default_rng(0).normal(size=(60, 2))
Y = np.sign(X[:, :1])


class Only:
    """A `BSVM`, of which no more is to be seen."""

    def __init__(self, model):
        self._model = model

    def __getattr__(self, name):
        if name in MEMBERS:
            return getattr(self._model, name)
        raise AttributeError(name)


@pytest.mark.parametrize(
    "algorithm",
    [CAVI(), SVI(batch_size=20, max_steps=20), VEM(2), Streaming()],
    ids=lambda a: type(a).__name__,
)
def test_an_algorithm_and_a_prediction_ask_for_no_more(algorithm):
    kernel, hinge = gpflow.kernels.SquaredExponential(4.0), gb.likelihoods.Hinge()
    whole = gb.models.BSVM(kernel, hinge, X[:9].copy(), whiten=False)
    listed = Only(gpflow.utilities.deepcopy(whole))
    for model in (whole, listed):
        algorithm.run(model, (X, Y), progress=False)
    for ask in (gb.prediction.predict_probabilities, gb.prediction.variation_ratio):
        np.testing.assert_allclose(ask(listed, X), ask(whole, X), atol=1e-8)


def test_a_fit_inside_tf_function_is_refused():
    model = gb.models.BSVM(gpflow.kernels.Linear(), gb.likelihoods.Hinge(), X[:9].copy())
    inside = tf.function(lambda: CAVI().run(model, (X, Y)))
    with pytest.raises(RuntimeError, match=r"outside of tf\.function"):
        inside()


def test_distributed_variables_are_refused():
    with tf.distribute.MirroredStrategy(["cpu:0"]).scope(), pytest.raises(TypeError, match="scope"):
        gb.BSVMRegressor().fit(X, X[:, 0])
