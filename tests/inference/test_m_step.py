"""The bound at fixed sites as a function of the hyperparameters, and its gradient."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from helpers import (
    ard,
    bound_of,
    every_trace,
    log_normal,
    make_data,
    make_model,
    some_sites,
    three_classes,
)

from gpflow_bsvm.engine.contracts import features_of
from gpflow_bsvm.inference import VEM
from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.likelihoods.base import Sites


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["augmented", "exact"])
def test_it_is_the_elbo_of_the_q_that_the_sites_make(data, bound):
    """In the words of GPflow: the sites as a Gaussian likelihood, then SVGP's ELBO."""
    mean_function = gpflow.functions.Linear([[0.4], [0.2]])
    model = make_model(data, likelihood=Hinge(bound=bound), mean_function=mean_function)
    (w, r), weight = some_sites(60), np.random.default_rng(1).uniform(0.5, 2, size=(60, 1))
    value, _ = bound_of(model, data, weight).value_and_gradient(Sites(w, r))
    phi, _, prior_mean = features_of(model, tf.constant(data[0]))
    phi, w, r = phi[0].numpy(), w.numpy(), r.numpy()
    P = np.eye(8) + phi.T @ (weight * w * phi)
    h = phi.T @ (weight * (r - w * prior_mean.numpy()))
    model.q_mu.assign(np.linalg.solve(P, h))
    model.q_sqrt.assign(np.linalg.cholesky(np.linalg.inv(P))[None])
    mean, variance = model.predict_f(data[0])
    terms = model.likelihood.variational_expectations(data[0], mean, variance, data[1])
    expected = np.sum(weight[:, 0] * terms.numpy()) - model.prior_kl().numpy()
    np.testing.assert_allclose(value, expected, rtol=1e-9)


def numerical_gradient(bound, sites):
    gradients = []
    for variable in bound.hyperparameters.variables:
        start = variable.numpy()
        slopes = np.zeros(start.size)
        for n in range(start.size):
            values = []
            for step in (1e-5, -1e-5):
                moved = start.copy().reshape(-1)
                moved[n] += step
                variable.assign(moved.reshape(start.shape))
                values.append(float(bound.value_and_gradient(sites)[0]))
            slopes[n] = (values[0] - values[1]) / 2e-5
        variable.assign(start)
        gradients.append(slopes.reshape(start.shape))
    return gradients


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_gradient_by_differences(data, classes):
    """With respect to kernel, inducing points, mean function and penalty, priors included."""
    if classes == 3:
        model, data = three_classes(data)
    else:
        model = make_model(data, kernel=ard(), likelihood=Hinge(bound="exact"))
    model.mean_function = gpflow.functions.Constant(np.full(1, 0.3))
    gpflow.set_trainable(model.likelihood.penalty, True)
    model.kernel.lengthscales.prior = log_normal(1.4, 0.4)
    model.kernel.variance.prior = tfp.distributions.Gamma(np.float64(2), np.float64(1))
    bound = bound_of(model, data)
    assert len(bound.hyperparameters.variables) == 5
    sites = some_sites(60, model.num_latent_gps)
    _, gradient = bound.value_and_gradient(sites)
    for one, other in zip(gradient, numerical_gradient(bound, sites)):
        # Central differences of step 1e-5 on values of order 100.
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [pytest.param(2, marks=pytest.mark.drill), 3])
def test_chunks_change_nothing(data, classes):
    model, data = three_classes(data) if classes == 3 else (make_model(data, kernel=ard()), data)
    model.kernel.variance.prior = log_normal(4.0, 1.0)
    sites = some_sites(60, model.num_latent_gps)
    value, gradient = bound_of(model, data).value_and_gradient(sites)
    again, parts = bound_of(model, data, chunk_rows=17).value_and_gradient(sites)
    np.testing.assert_allclose(value, again, rtol=1e-12)
    for one, other in zip(gradient, parts):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_a_thousand_fits_share_their_graphs(data):
    VEM(max_steps=2).run(make_model(data), data)
    traces = every_trace()
    for seed in range(3):
        VEM(max_steps=2).run(make_model(make_data(seed=seed)), make_data(seed=seed))
    assert every_trace() == traces > 0
