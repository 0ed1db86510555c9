"""Gaussian sites: closed form, automatic differentiation, and finite differences."""

import gpflow
import numpy as np
import pytest
import reference
import tensorflow as tf
from gpflow.likelihoods import ScalarLikelihood
from helpers import in_a_graph

from gpflow_bsvm.likelihoods import Hinge, Probit, sites, sites_by_autodiff
from gpflow_bsvm.likelihoods.base import has_hook

PENALTIES = (0.3, 2.0, 7.5)


def grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means up to 50 from 0, variances from 1e-12 to 1e4, labels in {-1, +1}; each [N, 1]."""
    mu = np.concatenate([np.linspace(-50, 50, 21), [0.999, 1.0, 1.001, -1.0, 0.9, 1.1]])
    columns = np.meshgrid(mu, np.logspace(-12, 4, 17), [-1.0, 1.0])
    mu, v, y = (column.reshape(-1, 1) for column in columns)
    return mu, v, y


@pytest.mark.parametrize("bound", ["augmented", "exact"])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_closed_sites_are_the_formulas(bound, penalty):
    mu, v, y = grid()
    w, r = Hinge(penalty, bound).sites(None, mu, v, y)
    w_expected, r_expected = reference.hinge_sites(mu, v, y, penalty, bound)
    np.testing.assert_allclose(w, w_expected, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(r, r_expected, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("bound", ["augmented", "exact"])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_closed_sites_are_those_of_automatic_differentiation(bound, penalty):
    mu, v, y = grid()
    likelihood = Hinge(penalty, bound)
    assert has_hook(likelihood, "sites")
    w, r = (site.numpy() for site in sites(likelihood, None, mu, v, y))
    w_auto, r_auto = (site.numpy() for site in sites_by_autodiff(likelihood, None, mu, v, y))
    assert (w >= 0).all() and np.isfinite(w).all() and np.isfinite(r).all()
    # Absolute: the derivative by v divides rounding by sqrt(v), the scale of w itself.
    scale = penalty / np.sqrt(v)
    np.testing.assert_array_less(np.abs(w - w_auto), 1e-10 * np.maximum(w, scale) + 1e-300)
    np.testing.assert_array_less(
        np.abs(r - r_auto), 1e-10 * (penalty + np.maximum(w, scale) * np.maximum(1, np.abs(mu)))
    )


def finite_difference_sites(likelihood: ScalarLikelihood, mu, v, Y):
    """w = -2 dV/dv, r = dV/dmu + w mu by central differences of the expectations."""

    def expectation(mu, v):
        return likelihood.variational_expectations(None, mu, v, Y).numpy()[:, None]

    step = 1e-4
    d_mean = (expectation(mu + step, v) - expectation(mu - step, v)) / (2 * step)
    d_var = (expectation(mu, v + step) - expectation(mu, v - step)) / (2 * step)
    return -2 * d_var, d_mean - 2 * d_var * mu


@pytest.mark.parametrize(
    "likelihood",
    [
        Probit(),
        Hinge(3.0, "augmented"),
        Hinge(3.0, "exact"),
        gpflow.likelihoods.Bernoulli(),
        gpflow.likelihoods.StudentT(),
        gpflow.likelihoods.Poisson(),
        gpflow.likelihoods.Gaussian(0.3),
    ],
    ids=lambda likelihood: type(likelihood).__name__,
)
def test_sites_of_any_likelihood_against_finite_differences(likelihood, rng):
    mu, v = rng.normal(size=(30, 1)), 0.2 + rng.gamma(1.0, size=(30, 1))
    Y = (rng.random((30, 1)) > 0.5).astype(float)
    w, r = sites(likelihood, None, mu, v, Y)
    w_expected, r_expected = finite_difference_sites(likelihood, mu, v, Y)
    clipped = w_expected < 0
    r_expected = np.where(clipped, r_expected - w_expected * mu, r_expected)
    # Central differences: an error of step^2 = 1e-8 times third derivatives.
    np.testing.assert_allclose(w, np.maximum(w_expected, 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(r, r_expected, rtol=1e-5, atol=1e-6)


def test_gaussian_likelihood_has_its_own_sites(rng):
    mu, v, Y = rng.normal(size=(3, 10, 1))
    w, r = sites(gpflow.likelihoods.Gaussian(0.25), None, mu, np.square(v), Y)
    np.testing.assert_allclose(w, np.full((10, 1), 4.0), rtol=1e-12)
    np.testing.assert_allclose(r, 4 * Y, rtol=1e-12)


def test_precisions_of_the_floored_bernoulli_are_clipped_at_zero():
    # Deep on the wrong side GPflow's floor of 1e-3 makes log p convex in f.
    likelihood = gpflow.likelihoods.Bernoulli()
    mu, v, Y = np.array([[-3.5], [0.0]]), np.full((2, 1), 0.3), np.ones((2, 1))
    unclipped, _ = finite_difference_sites(likelihood, mu, v, Y)
    assert unclipped[0] < -1e-3  # the case that this test is about
    w, r = sites(likelihood, None, mu, v, Y)
    assert w[0] == 0 and w[1] > 0
    slope = finite_difference_sites(likelihood, np.zeros((2, 1)), v, Y)[1]
    with tf.GradientTape() as tape:
        F = tf.constant(mu)
        tape.watch(F)
        value = likelihood.variational_expectations(None, F, v, Y)
    np.testing.assert_allclose(r[0], tape.gradient(value, F)[0], rtol=1e-12)
    assert slope[1] > 0
    w_probit, _ = sites(Probit(), None, mu, v, Y)
    assert (w_probit.numpy() > 0).all()


@pytest.mark.parametrize(
    "likelihood",
    [Hinge(bound="augmented"), Hinge(), Probit()],
    ids=["augmented", "exact", "probit"],
)
def test_sites_work_in_a_graph_and_for_several_latents(likelihood, rng):
    mu, v = rng.normal(size=(7, 3)), rng.gamma(1.0, size=(7, 3))
    Y = (rng.random((7, 3)) > 0.5).astype(float)
    in_graph = in_a_graph(lambda *args: sites(likelihood, None, *args))(mu, v, Y)
    for i, column in enumerate(zip(*(site.numpy().T for site in in_graph))):
        single = sites(likelihood, None, mu[:, [i]], v[:, [i]], Y[:, [i]])
        for found, expected in zip(column, single):
            np.testing.assert_allclose(found, expected[:, 0], rtol=1e-12)


def test_closed_sites_are_preferred():
    class Own(Probit):
        def sites(self, X, Fmu, Fvar, Y):
            return 0 * Fmu + 5, 0 * Fmu + 7

    one = tf.ones((2, 1), tf.float64)
    assert [site.numpy().max() for site in sites(Own(), None, one, one, one)] == [5, 7]


def test_a_likelihood_of_constant_expectation_has_empty_sites():
    class Flat(ScalarLikelihood):
        def _scalar_log_prob(self, X, F, Y):
            return tf.zeros_like(F)

        def _variational_expectations(self, X, Fmu, Fvar, Y):
            return tf.zeros_like(Fmu[:, 0])

    w, r = sites(Flat(), None, np.ones((4, 1)), np.ones((4, 1)), np.ones((4, 1)))
    np.testing.assert_array_equal(w, np.zeros((4, 1)))
    np.testing.assert_array_equal(r, np.zeros((4, 1)))
