"""Marginals, the statistics of a pass, and gradients by the sites where these are derivatives."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import make_data, projected
from naturals import random_natural

from gpflow_bsvm.engine.natural import (
    solve,
)
from gpflow_bsvm.engine.statistics import (
    Marginals,
    accumulate,
    batch_marginals,
    local_for_gradient,
    local_slopes,
    localise,
    marginals,
)
from gpflow_bsvm.likelihoods import (
    CrammerSinger,
    Hinge,
    LevelHinge,
    Logistic,
    OneVsRest,
    OneVsRestLevelHinge,
    Probit,
)


@pytest.mark.parametrize("num_latents, shared", [(1, True), (3, True), (3, False)])
def test_three_ways_to_the_marginals(rng, num_latents, shared):
    natural = random_natural(rng, num_latents, 6)
    features = tf.constant(rng.normal(size=(1 if shared else num_latents, 4, 6)))
    q = solve(natural)
    one = marginals(features, q)
    two = batch_marginals(features, natural, few=True)
    covariance = np.linalg.inv(natural.P)
    wide = np.broadcast_to(features, (num_latents, 4, 6))
    mean = np.einsum("lnm,lmk,lk->nl", wide, covariance, natural.h)
    variance = np.einsum("lnm,lmk,lnk->nl", wide, covariance, wide)
    for found in (one, two):
        np.testing.assert_allclose(found[0], mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found[1], variance, rtol=1e-9, atol=1e-11)


def test_accumulate_is_the_sum_over_rows(rng):
    X, Y = make_data(20)
    features = tf.constant(rng.normal(size=(1, 20, 4)))
    weight, residual = rng.random((20, 1)), rng.random((20, 1))
    prior_mean = rng.normal(size=(20, 1))
    rows = projected(X, Y, weight, features, residual, prior_mean)
    f = Marginals(tf.constant(rng.normal(size=(20, 1))), tf.constant(rng.random((20, 1))))
    likelihood = Hinge(1.5, "exact")
    h, P, expectation = np.zeros((1, 4)), np.zeros((1, 4, 4)), 0.0
    for n in range(20):
        mean, variance = f[0][n] + prior_mean[n], f[1][n] + residual[n]
        w, r = likelihood.sites(None, mean, variance, Y[n])
        feature = features[0, n].numpy()
        h[0] += weight[n] * (r - w * prior_mean[n]) * feature
        P[0] += weight[n] * w * np.outer(feature, feature)
        expectation += weight[n] * likelihood.variational_expectations(None, mean, variance, Y[n])
    found = accumulate(likelihood, rows, f)
    np.testing.assert_allclose(found.sums.h, h, rtol=1e-11)
    np.testing.assert_allclose(found.sums.P, P, rtol=1e-11)
    np.testing.assert_allclose(found.expectation, expectation[0], rtol=1e-12)


def test_rounding_below_zero_does_not_reach_the_likelihood():
    tiny = tf.constant([[-1e-13]], tf.float64)
    one = tf.ones((1, 1), tf.float64)
    rows = projected(one, one, one, one[None], tiny, 0 * one)
    for likelihood in (Hinge(bound="exact"), Probit()):  # a quadrature takes the square root
        found = accumulate(likelihood, rows, Marginals(one, 0 * one))
        assert all(np.isfinite(value).all() for value in tf.nest.flatten(found))


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
