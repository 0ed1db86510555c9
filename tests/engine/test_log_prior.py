"""Log prior densities and gradients are GPflow's, by one graph whatever the numbers of priors."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_bsvm import priors
from gpflow_bsvm.engine import hyperparameters
from gpflow_bsvm.engine.hyperparameters import LogPrior
from gpflow_bsvm.engine.structure import copied

tfd = tfp.distributions


def gpflows(parameters):
    """:return: density and gradient as GPflow has them."""
    variables = [parameter.unconstrained_variable for parameter in parameters]
    with tf.GradientTape() as tape:
        total = tf.add_n([parameter.log_prior_density() for parameter in parameters])
    return total, tape.gradient(total, variables)


@pytest.mark.parametrize("on", ["constrained", "unconstrained"])
@pytest.mark.parametrize(
    "prior",
    [
        tfd.LogNormal(np.float64(0.3), np.float64(0.7)),
        tfd.Gamma(gpflow.utilities.to_default_float(2), gpflow.utilities.to_default_float(3)),
        tfd.Normal(np.array([0.1, 0.5]), np.array([1.0, 2.0])),
        tfd.TransformedDistribution(tfd.Normal(np.float64(0), np.float64(1)), tfp.bijectors.Exp()),
    ],
    ids=lambda prior: type(prior).__name__,
)
def test_density_and_gradient_are_gpflows(prior, on):
    kernel = gpflow.kernels.SquaredExponential(1.5, lengthscales=[0.7, 1.9])
    kernel.lengthscales.prior, kernel.lengthscales.prior_on = prior, on
    learned = [kernel.variance, kernel.lengthscales]
    variables = [parameter.unconstrained_variable for parameter in learned]
    density = LogPrior(learned)
    value, gradient = density.value_and_gradient(variables)
    expected, slopes = gpflows([kernel.lengthscales])
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    assert list(gradient) == [1]
    np.testing.assert_allclose(gradient[1], slopes[0], rtol=1e-12)


def test_penalties_share_a_graph():
    def found(penalty):
        kernel = priors.default_kernel(3, penalty=penalty)
        learned = list(kernel.trainable_parameters)
        values = [parameter.unconstrained_variable for parameter in learned]
        value, gradient = LogPrior(learned).value_and_gradient(values)
        expected, slopes = gpflows(learned)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        for place, slope in enumerate(slopes):
            np.testing.assert_allclose(gradient[place], slope, rtol=1e-12, atol=1e-12)
        return hyperparameters._value_and_gradient.num_traces

    before = found(1.0)
    assert found(4.99) == before


def test_nothing_has_a_prior():
    kernel = gpflow.kernels.SquaredExponential()
    density = LogPrior(kernel.trainable_parameters)
    variables = [parameter.unconstrained_variable for parameter in kernel.trainable_parameters]
    assert density.value_and_gradient(variables) == (0.0, {})


def test_a_prior_of_a_user_that_does_not_tell_its_parameters():
    class Twice(tfd.Normal):
        def __init__(self, deviation):
            super().__init__(np.float64(0), np.float64(2 * deviation))
            self._parameters = {"deviation": deviation}
            self.shift = 0.0

        def log_prob(self, value, **how):
            return super().log_prob(value - self.shift, **how)

    kernel = gpflow.kernels.SquaredExponential(1.5)
    kernel.variance.prior = Twice(0.7)
    kernel.variance.prior.shift = 0.3
    learned = [kernel.variance]
    value, gradient = LogPrior(learned).value_and_gradient([kernel.variance.unconstrained_variable])
    expected, slopes = gpflows(learned)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient[0], slopes[0], rtol=1e-12)


def test_a_copy_shares_a_prior_that_tfp_cannot_copy():
    """Estimators copy the kernels that they are given, and models for growth."""
    correlated = tfd.MultivariateNormalTriL(np.ones(2), np.array([[1.0, 0.0], [0.8, 0.6]]))
    kernel = gpflow.kernels.SquaredExponential(1.5, lengthscales=[0.7, 1.9])
    kernel.lengthscales.prior = correlated
    copy = copied(kernel)
    kernel.lengthscales.assign([3.0, 3.0])
    np.testing.assert_array_equal(copy.lengthscales, [0.7, 1.9])
    assert copy.lengthscales.prior is correlated
