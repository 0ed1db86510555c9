"""Gradients by the sites, where these are derivatives, are those of the expectation."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import projected

from gpflow_bsvm.engine.statistics import Marginals, local_for_gradient, local_slopes, localise
from gpflow_bsvm.likelihoods import (
    CrammerSinger,
    Hinge,
    LevelHinge,
    Logistic,
    OneVsRest,
    OneVsRestLevelHinge,
    Probit,
)

SLOPES = [
    Hinge(3.0, "exact"),
    Hinge(3.0, "augmented"),
    Hinge(normalizer=True),
    Logistic(),
    LevelHinge(),
    OneVsRest(3),
    OneVsRestLevelHinge(3),
    CrammerSinger(3),
    CrammerSinger(3, bound="wistuba2018"),
]


def rows_of(likelihood, num_rows=12):
    """Rows with weights, phi and all that a gradient is taken of."""
    random = np.random.default_rng(0)
    L = likelihood.latent_dim or 1
    Y = np.arange(num_rows)[:, None] % getattr(likelihood, "num_classes", 2) * 1.0
    moves = [
        tf.Variable(random.normal(size=(num_rows, L))),  # of Phi s
        tf.Variable(random.gamma(1.0, size=(num_rows, L))),
        tf.Variable(random.gamma(1.0, size=(num_rows, 1))),  # the residual
        tf.Variable(random.normal(size=(num_rows, 1))),  # the prior's mean
    ]
    weight = random.gamma(2.0, size=(num_rows, 1))
    rest = (np.zeros((num_rows, 1)), Y, weight, np.zeros((1, num_rows, 2)))
    return moves, rest


def gradients(how, likelihood):
    (mean, variance, residual, prior_mean), (X, Y, weight, phi) = rows_of(likelihood)
    with tf.GradientTape() as tape:
        rows = projected(X, Y, weight, phi, residual, prior_mean)
        local = how(likelihood, rows, Marginals(mean + 0, variance + 0))
        loss = tf.reduce_sum(local.expectation)
    return local.sites, tape.gradient(loss, [mean, variance, residual, prior_mean])


@pytest.mark.parametrize("likelihood", SLOPES, ids=lambda one: type(one).__name__)
def test_slopes_are_the_gradient_of_the_expectation(likelihood):
    assert local_for_gradient(likelihood) is local_slopes
    sites, found = gradients(local_slopes, likelihood)
    expected_sites, expected = gradients(localise, likelihood)
    for one, two in zip([*sites, *found], [*expected_sites, *expected]):
        # The quadrature of Crammer and Singer's loss is one of values, and one of derivatives.
        tolerance = 1e-6 if isinstance(likelihood, CrammerSinger) else 1e-10
        np.testing.assert_allclose(one, two, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "likelihood",
    [
        CrammerSinger(3, bound="augmented"),  # a precision may be set to 0
        Probit(),  # no sites of its own
        gpflow.likelihoods.Bernoulli(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_others_are_differentiated(likelihood):
    assert local_for_gradient(likelihood) is localise


def test_what_a_likelihood_learns_needs_the_expectation():
    likelihood = Hinge(normalizer=True)
    gpflow.set_trainable(likelihood.penalty, True)
    assert local_for_gradient(likelihood) is localise
