"""Lengthscales from which a kernel is learned again: a tenth of one, if this raises the bound."""

import gpflow
import numpy as np
import pytest

import gpflow_bsvm as gb
from gpflow_bsvm.estimators import choice, rough
from gpflow_bsvm.estimators.training import WORTH_LEARNING, opened
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.priors import default_kernel


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(-2, 2, size=(80, 2))


def fitted(X, labels, lengthscales=(3.0, 3.0)):
    """:return: a model with a smooth kernel, and its rows."""
    kernel = default_kernel(2)
    kernel.kernels[0].lengthscales.assign(lengthscales)
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(), np.unique(X[:40], axis=0))
    gpflow.set_trainable(model.inducing_variable, False)
    rows = opened(model, (X, labels[:, None].astype(float), np.ones(len(X))))
    gb.fit(model, (X, labels[:, None].astype(float)))
    return model, rows


def stripes(X, frequency=7):
    return np.sin(frequency * X[:, 1]) > 0


def state(model):
    return [variable.numpy() for variable in model.variables]


@pytest.mark.parametrize(("frequency", "factor"), [(6, 0.1), (12, 0.03)])
def test_the_column_of_stripes_is_found(X, frequency, factor):
    model, rows = fitted(X, stripes(X, frequency))
    before = state(model)
    parameter, values = rough.shorter(model, rows)
    assert parameter is model.kernel.kernels[0].lengthscales
    assert values[0] == parameter.numpy()[0]
    np.testing.assert_allclose(values[1] / parameter.numpy()[1], factor)
    for one, other in zip(state(model), before):
        np.testing.assert_array_equal(one, other)


def test_nothing_is_found_where_f_is_smooth_or_values_are_few(X):
    assert rough.shorter(*fitted(X, X.sum(axis=1) > 0)) is None
    few = np.column_stack([np.sign(X[:, 0]), np.round(X[:, 1])])
    assert rough.shorter(*fitted(few, stripes(X))) is None


def test_the_bound_is_that_of_a_fit(X):
    model, rows = fitted(X, stripes(X))
    bound = rough.bound_of(model, rows)
    model.kernel.kernels[0].lengthscales.assign([3.0, 0.3])
    density = float(model.log_prior_density())
    history = CAVI(tol=0.0).run(model, (X, stripes(X)[:, None].astype(float)))
    np.testing.assert_allclose(bound(100), history.elbo[-1] + density, rtol=1e-8)


@pytest.mark.parametrize("helps", [True, False])
def test_a_kernel_is_kept_if_it_raises_the_bound(X, helps):
    model, rows = fitted(X, stripes(X))
    before = state(model)
    lengthscales = model.kernel.kernels[0].lengthscales

    def learn():
        np.testing.assert_allclose(lengthscales, [3.0, 0.3])
        if not helps:
            lengthscales.assign([0.01, 0.01])
        return "history"

    assert rough.learn_from_shorter(model, rows, rows, learn) == ("history" if helps else None)
    if helps:
        np.testing.assert_allclose(lengthscales, [3.0, 0.3])
        return
    for one, other in zip(state(model), before):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_shared_lengthscales_have_no_columns(X):
    model, rows = fitted(X, stripes(X))
    model.kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=3.0)
    assert rough.shorter(model, rows) is None


@pytest.mark.parametrize("trend", [0.0, 1.0])
def test_a_fast_sine_is_no_uniform_noise(trend):
    """Its values are as if drawn from a tube, which a large epsilon explains without any f."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (150, 1))
    f = np.sin(8 * X[:, 0]) + trend * X[:, 0]
    regressor = gb.BSVMRegressor(num_inducing=60).fit(X, f + 0.1 * rng.normal(size=150))
    assert np.std(regressor.predict(X) - f) < 0.1


@pytest.mark.slow
def test_a_product_of_sines_is_not_taken_for_noise(monkeypatch):
    """Learning from long lengthscales ends in a local optimum, in which f is smooth."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (200, 3))
    y = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]) + 0.3 * X[:, 2] + 0.1 * rng.normal(size=200)
    found = gb.BSVMRegressor().fit(X, y)
    monkeypatch.setattr(choice, "ROUGH_COLUMNS", (4, 6))
    smooth = gb.BSVMRegressor().fit(X, y)
    assert found.history_.elbo[-1] > smooth.history_.elbo[-1] + WORTH_LEARNING * len(X)
    assert np.argmax(found.lengthscales_) == 2
