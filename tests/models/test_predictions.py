"""`predict_f` and `predict_y` by graphs: what GPflow says, with its gradients, traced once."""

from functools import partial

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import ard, every_trace, kernel_with_offset, randomise

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, LevelHinge, OneVsRestLevelHinge
from gpflow_bsvm.models import BSVM

X = np.random.default_rng(0).normal(size=(12, 2))
Z = X[:5].copy()


def separate():
    kernels = [gpflow.kernels.SquaredExponential(1.0, scale) for scale in (0.5, 1.0, 2.0)]
    shared = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(Z)
    )
    return BSVM(gpflow.kernels.SeparateIndependent(kernels), CrammerSinger(3), shared)


def levels(slope=1.0, num_inducing=5):
    mean = gpflow.functions.Linear(np.full((2, 1), slope))
    return BSVM(ard(), OneVsRestLevelHinge(3), X[:num_inducing].copy(), mean_function=mean)


MODELS = {
    "hinge": lambda: BSVM(ard(), Hinge(), Z),
    "not whitened": lambda: BSVM(kernel_with_offset(), LevelHinge(), Z, whiten=False),
    "levels": levels,
    "separate": separate,
    "of GPflow": lambda: BSVM(ard(), gpflow.likelihoods.Bernoulli(), Z),
    "linear": lambda: gb.models.LinearBSVM(2, LevelHinge()),
}


@tf.autograph.experimental.do_not_convert
def plain(model):
    """
    :return: predictions of f and y, as GPflow itself makes them. Its `tf.map_fn` over kernels would
        have AutoGraph rewrite GPflow's sources, which takes most of the time.
    """
    f = gpflow.models.SVGP.predict_f(model, X)
    return *f, *model.likelihood.predict_mean_and_var(X, *f)


def with_gradients(model, predict):
    rows = tf.range(1.0, len(X) + 1.0, dtype=tf.float64)[:, None]
    with tf.GradientTape() as tape:
        found = predict(model)
        number = sum(tf.reduce_sum(rows * part) for part in found)
    variables = [v for v in model.trainable_variables if v.dtype == tf.float64]
    return *found, *tape.gradient(number, variables, unconnected_gradients="zero")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(MODELS[name], marks=[pytest.mark.slow] * (name == "separate"))
        for name in MODELS
    ],
    ids=MODELS,
)
def test_predictions_and_their_gradients_are_those_of_gpflow(make):
    model = make()
    randomise(model)
    model.predict_f(X)  # what is remembered of this has no gradients
    mine = with_gradients(model, lambda model: (*model.predict_f(X), *model.predict_y(X)))
    for one, other in zip(mine, with_gradients(model, plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_the_gradient_by_x_is_that_of_gpflow():
    model, at = levels(), tf.constant(X)
    randomise(model)
    found = []
    gpflows = partial(gpflow.models.SVGP.predict_f, model)
    for predict in (gpflows, model.predict_f, model.predictor()):
        with tf.GradientTape() as tape:
            tape.watch(at)
            mean, variance = predict(at)
            both = tf.reduce_sum(mean) + tf.reduce_sum(tf.sqrt(variance))
        found.append(tape.gradient(both, at))
    for gradient in found[1:]:
        np.testing.assert_allclose(gradient, found[0], rtol=1e-9, atol=1e-10)


def test_models_of_a_kind_and_any_number_of_rows_share_the_graphs():
    levels().predict_y(X)
    before = every_trace()
    other = levels(slope=0.0, num_inducing=7)
    for rows in (X[:1], X[:9], np.zeros((0, 2))):
        mean, variance = other.predict_y(rows)
        assert mean.shape == variance.shape == (len(rows), 3)
    assert every_trace() == before


def test_a_graph_of_the_user_follows_the_parameters():
    model = MODELS["hinge"]()
    spec = tf.TensorSpec([None, None], tf.float64)
    predict = tf.function(model.predict_y, input_signature=[spec])
    for seed in range(2):
        randomise(model, seed)
        model.kernel.variance.assign(2 * model.kernel.variance)
        np.testing.assert_allclose(predict(X), plain(model)[2:], rtol=1e-9)


def test_rows_of_another_width_are_refused():
    """A single column would be broadcast to all lengthscales."""
    model = MODELS["hinge"]()
    for predict in (model.predict_f, model.predict_y):
        with pytest.raises(ValueError, match="X has 1 columns, the inducing points have 2"):
            predict(X[:, :1])
    np.testing.assert_array_equal(model.predict_y(X.tolist()), model.predict_y(X))


def test_predictions_follow_whiten():
    model = MODELS["hinge"]()
    randomise(model)
    for whiten in (True, False):
        model.whiten = whiten
        for mine, theirs in zip(gb.prediction.predict_marginals(model, X), model.predict_f(X)):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10)
