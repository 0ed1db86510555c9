"""Functions of `gpflow_bsvm.prediction` answer in the units of a regressor's y."""

import numpy as np
import pytest
from scipy import integrate

import gpflow_bsvm as gb

P = gb.prediction


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (60, 1))
    y = 500 + 100 * np.sin(X[:, 0]) + 20 * rng.normal(size=60)
    options = {"learn_kernel": False, "penalty": 0.05, "epsilon": 5.0, "num_inducing": 10}
    return gb.BSVMRegressor(**options, random_state=0).fit(X, y), X, y


def test_means_are_predictions(fitted):
    model, X, _ = fitted
    mean, variance = P.predict_marginals(model, X)
    np.testing.assert_allclose(mean[:, 0], model.predict(X), rtol=1e-12)
    np.testing.assert_allclose(P.predict_probabilities(model, X)[:, 0], model.predict(X))
    noise = model.y_scale_**2 * model.model_.likelihood.noise_variance
    np.testing.assert_allclose(model.predict(X, return_std=True)[1] ** 2, variance[:, 0] + noise)
    np.testing.assert_allclose(P.latent_variance(model, X), variance[:, 0])
    draws = P.draw_f(model, X[:2], num_samples=4000)[..., 0]
    error = 4 * np.sqrt(variance[:2, 0] / 4000)  # four standard errors
    assert (np.abs(draws.mean(axis=0) - mean[:2, 0]) < error).all()


def test_densities_integrate_to_1(fitted):
    model, X, _ = fitted
    y = np.linspace(0, 1000, 4001)
    density = np.exp(P.predict_log_density(model, (np.repeat(X[:1], len(y), axis=0), y)))
    # Laplace tails beyond the grid and the kinks at epsilon: measured 2e-7.
    assert integrate.simpson(density, x=y) == pytest.approx(1, abs=1e-5)


def test_left_out_rows(fitted):
    model, X, y = fitted
    mean, _ = P.leave_one_out(model, (X, y))
    assert np.abs(mean[:, 0] - y).mean() < 50
    own = P.leave_one_out_density(model.model_, model.as_model_sees((X, y), labelled=True))
    found = P.leave_one_out_density(model, (X, y))
    np.testing.assert_allclose(found, own - np.log(model.y_scale_))


@pytest.mark.parametrize("dtype", [str, object])
def test_words_are_no_numbers(fitted, dtype):
    model, X, y = fitted
    with pytest.raises(ValueError, match="y must be numbers, got '"):
        P.predict_log_density(model, (X, y.astype(str).astype(dtype)))
