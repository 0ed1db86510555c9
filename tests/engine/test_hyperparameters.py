"""What is learned besides q: its names, its priors, and where learning cannot start."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from helpers import (
    ard,
    bound_of,
    log_normal,
    make_model,
    some_sites,
)

from gpflow_bsvm.engine.hyperparameters import Hyperparameters
from gpflow_bsvm.inference import VEM
from gpflow_bsvm.likelihoods import Hinge


@pytest.mark.parametrize("on", ["constrained", "unconstrained"])
def test_priors_are_gpflows(data, on):
    model = make_model(data, kernel=ard())
    model.kernel.lengthscales.prior = log_normal(1.4, 0.4)
    model.kernel.variance.prior = tfp.distributions.Gamma(np.float64(2), np.float64(1))
    for parameter in (model.kernel.lengthscales, model.kernel.variance):
        parameter.prior_on = on
    bound = bound_of(model, data)
    np.testing.assert_allclose(
        bound.hyperparameters.log_prior_density(), model.log_prior_density(), rtol=1e-12
    )
    gpflow.set_trainable(model.kernel.variance, False)  # its prior no longer counts
    np.testing.assert_allclose(
        Hyperparameters(model).log_prior_density(), model.log_prior_density(), rtol=1e-12
    )


@pytest.mark.slow
def test_a_prior_that_ties_lengthscales(data):
    """TFP's `TransformedDistribution` cannot be copied, and need not be."""
    tfd = tfp.distributions
    model = make_model(data, kernel=ard())
    gpflow.set_trainable(model.inducing_variable, False)
    normal = tfd.MultivariateNormalTriL(np.zeros(2), 0.4 * np.array([[1.0, 0.0], [0.9, 0.4]]))
    model.kernel.lengthscales.prior = tfd.TransformedDistribution(normal, tfp.bijectors.Exp())
    bound, sites = bound_of(model, data), some_sites(60)
    value, gradient = bound.value_and_gradient(sites)
    with tf.GradientTape() as tape:
        log_prior = model.log_prior_density()
    theirs = tape.gradient(log_prior, bound.hyperparameters.variables, unconnected_gradients="zero")
    np.testing.assert_allclose(bound.hyperparameters.log_prior_density(), log_prior, rtol=1e-12)
    model.kernel.lengthscales.prior = None
    flat_value, flat = bound_of(model, data).value_and_gradient(sites)
    np.testing.assert_allclose(value, flat_value + log_prior, rtol=1e-12)
    for one, other, prior in zip(gradient, flat, theirs):
        np.testing.assert_allclose(one, other + prior, rtol=1e-8, atol=1e-10)


def test_what_is_learned(data):
    model = make_model(data, kernel=ard() + gpflow.kernels.White())
    gpflow.set_trainable(model.inducing_variable, False)
    assert set(Hyperparameters(model).named) == {
        ".kernel.kernels[0].variance",
        ".kernel.kernels[0].lengthscales",
        ".kernel.kernels[1].variance",
    }


@pytest.mark.slow
def test_values_have_the_names_of_gpflow(data):
    model = make_model(data, kernel=ard())
    history = VEM(max_steps=2, tol=0).run(model, data)
    assert set(history.hyperparameters) == {
        ".kernel.variance",
        ".kernel.lengthscales",
        ".inducing_variable.Z",
    }
    for name, values in history.hyperparameters.items():
        assert len(values) == len(history)
        np.testing.assert_array_equal(values[-1], gpflow.utilities.parameter_dict(model)[name])


def test_starts_that_cannot_be_learned_from(data):
    model = make_model(data, kernel=ard())
    tfd = tfp.distributions
    model.kernel.variance.prior = tfd.Uniform(np.float64(100), np.float64(200))
    with pytest.raises(ValueError, match=r"the prior of .kernel.variance, Uniform, excludes"):
        VEM().run(model, data)
    model.kernel.variance.prior = None
    model.kernel.variance.unconstrained_variable.assign(np.nan)
    with pytest.raises(ValueError, match=r".kernel.variance is nan"):
        VEM().run(model, data)


class WarpedKernel(gpflow.kernels.SquaredExponential):
    """A deep kernel in small: it holds a bare variable, as Keras layers do."""

    def __init__(self):
        super().__init__()
        self.stretch = tf.Variable(1.3, dtype=tf.float64)

    def K(self, X, X2=None):
        return super().K(self.stretch * X, None if X2 is None else self.stretch * X2)


@pytest.mark.slow
def test_bare_variables_are_learned_too(data):
    model = make_model(data, kernel=WarpedKernel(), likelihood=Hinge(bound="exact"))
    gpflow.set_trainable(model.inducing_variable, False)
    history = VEM(max_steps=3).run(model, data)
    assert history.elbo[-1] > history.elbo[0]
    assert history.hyperparameters[".kernel.stretch"][-1] != 1.3


@pytest.mark.parametrize("codes", [[1, 0], ["cat", "dog"]])
def test_codes_are_not_learned(data, codes):
    """Variables of whole numbers had made the gradient 0, and the fit `converged`."""
    model = make_model(data, kernel=gpflow.kernels.SquaredExponential())
    gpflow.set_trainable(model.inducing_variable, False)
    model.kernel.codes = tf.Variable(codes)
    assert list(model.hyperparameters()) == [".kernel.variance", ".kernel.lengthscales"]
