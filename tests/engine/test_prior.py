"""The factor of the prior, the jitter that it takes, and why there is none."""

import copy

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels as k
from helpers import as_svgp, assert_same_state, make_model, state
from runs import RUNS

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import Hinge


@pytest.fixture
def near_singular(data):
    """A model whose Kuu has no Cholesky factor at the jitter in force."""
    Z = np.linspace(0, 1e-3, 12)[:, None] * np.ones((1, 2))
    config = gpflow.config.Config(jitter=1e-18)
    with gpflow.config.as_context(config):
        yield gb.models.BSVM(gpflow.kernels.SquaredExponential(10.0), Hinge(), Z, num_data=60)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Kuu needed a jitter")
def test_jitter_is_raised_where_the_default_fails(near_singular, data):
    model = near_singular
    with pytest.warns(UserWarning, match="Kuu needed a jitter of"):
        history = gb.inference.CAVI().run(model, data)
    jitter = model.jitter
    assert 1e-18 < jitter <= 1e-2
    np.testing.assert_allclose(history.elbo[-1], model.elbo(data), rtol=1e-8)
    plain = as_svgp(model)
    with gpflow.config.as_context(gpflow.config.Config(jitter=jitter)):
        expected = plain.elbo(data), *plain.predict_f(data[0])
    found = model.elbo(data), *model.predict_f(data[0])
    compiled = tf.function(lambda: (model.elbo(data), *model.predict_f(data[0])))()
    for a, b, c in zip(found, compiled, expected):
        np.testing.assert_allclose(a, c, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(b, c, rtol=1e-9, atol=1e-9)
    predicted = model.posterior().predict_f(data[0])
    # TENSOR caches go by another formula: the conditioning of Kuu, 1e11, times rounding.
    np.testing.assert_allclose(predicted[0], expected[1], rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Kuu needed a jitter")
def test_a_raised_jitter_holds_inside_a_graph(near_singular, data):
    model = near_singular
    gb.inference.CAVI(max_steps=3).run(model, data)
    outside = copy.deepcopy(model)
    outside.natgrad_step(data, 0.5)
    tf.function(lambda: model.natgrad_step(data, 0.5))()
    assert_same_state(state(model), state(outside), 1e-8)


@pytest.mark.filterwarnings("ignore:Kuu needed a jitter")
def test_the_default_jitter_is_tried_again(near_singular, data):
    model = near_singular
    gb.inference.CAVI(max_steps=1).run(model, data)
    assert model.jitter > 1e-18
    model.inducing_variable.Z.assign(data[0][:12])
    gb.inference.CAVI(max_steps=1).run(model, data)
    assert model.jitter == 1e-18


@pytest.mark.parametrize("jitter", [0.0, 0.1])
def test_any_default_jitter_is_tried_first(data, jitter):
    with gpflow.config.as_context(gpflow.config.Config(jitter=jitter)):
        model = make_model(data)
        history = gb.inference.CAVI().run(model, data)
        assert model.jitter == jitter
        np.testing.assert_allclose(history.elbo[-1], as_svgp(model).elbo(data), rtol=1e-9)


def test_no_jitter_at_all_is_raised_too(data):
    Z = np.linspace(0, 1e-3, 12)[:, None] * np.ones((1, 2))
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
        model = gb.models.BSVM(gpflow.kernels.SquaredExponential(10.0), Hinge(), Z)
        with pytest.warns(UserWarning, match="Kuu needed a jitter of"):
            gb.inference.CAVI(max_steps=2).run(model, data)
        assert 0 < model.jitter <= 1e-2


@pytest.mark.parametrize("run", ["CAVI", "SVI", "natgrad_step"])
@pytest.mark.parametrize(
    "kernel, match",
    [
        (
            k.SquaredExponential(lengthscales=1e-300),
            "kernel is not finite .*lengthscales = 1.e-300",
        ),
        (k.Polynomial(degree=400, offset=10.0), "kernel is not finite .*offset = 10"),
    ],
    ids=["lengthscale", "degree"],
)
def test_a_kernel_that_overflows(data, kernel, match, run):
    model = make_model((100 * data[0], data[1]), kernel=kernel)
    with pytest.raises(ValueError, match=f"no Cholesky factor.*{match}"):
        RUNS[run](model, data)


def test_inducing_points_that_have_become_equal(data):
    model = make_model(data, kernel=k.Matern12(1e20))  # a jitter of 1e-2 is nothing beside it
    Z = model.inducing_variable.Z.numpy()
    Z[3] = Z[1]
    model.inducing_variable.Z.assign(Z)
    with pytest.raises(ValueError, match="inducing points 1 and 3 are equal"):
        CAVI().run(model, data)


def test_inducing_points_that_are_too_close(data):
    X = data[0]
    model = gb.models.BSVM(
        k.SquaredExponential(1e15, 3.0), Hinge(), np.linspace(0, 1e-6, 20)[:, None] * X[:1]
    )
    with pytest.raises(ValueError, match=r"inducing points are too close .*variance = 1.e.15"):
        CAVI().run(model, data)


def test_a_kernel_that_is_nan_in_single_precision_asks_for_double():
    """GPflow's ArcCosine takes the arc cosine of a number that rounds to more than 1."""
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        Z = np.random.default_rng(0).normal(size=(50, 1)).astype(np.float32)
        model = gb.models.BSVM(gpflow.kernels.ArcCosine(), gb.likelihoods.Hinge(), Z)
        with pytest.raises(ValueError, match=r"is not finite .*, or use float64 \(ArcCosine"):
            model.prior_factor()
