"""Any sum of hinges: against quadrature, costs of one's own, local variables and their draws."""

import math

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import make_data, make_model
from scipy.integrate import dblquad

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import (
    Hinge,
    HingeSum,
    LevelHinge,
    OneVsRest,
    Terms,
    location_spread,
    sites,
    sites_by_autodiff,
)
from gpflow_bsvm.likelihoods.base import has_hook
from gpflow_bsvm.prediction.local_variables import bound_at

BOUNDS = pytest.mark.parametrize("bound", ["exact", "augmented"])
ALONE = [Hinge(1.3), OneVsRest(3, 1.3), LevelHinge(1.3, levels=location_spread(4, 0.0))]
NAMES = [type(one).__name__ for one in ALONE]


class Weighted(Hinge):
    """Errors on y = 1 cost three times as much."""

    def terms(self, y):
        return Terms(2.0 + y, 1.0, y)


class Pair(HingeSum, gpflow.likelihoods.Likelihood):
    """Two hinges of two latent functions, with offsets, signs and costs of their own."""

    def __init__(self, bound="exact"):
        shape = {"input_dim": None, "latent_dim": 2, "observation_dim": 1}
        super().__init__(0.7, bound, W=[[1.0, -0.5], [0.0, 2.0]], b=[0.3, -1.0], **shape)

    def targets(self, Y, F):
        return tf.cast(Y, F.dtype)

    def terms(self, y):
        return Terms([1.0, 0.4], tf.concat([y - 0.1, 1 - y], axis=-1), [1.0, -1.0])

    def _predict_mean_and_var(self, X, Fmu, Fvar):
        raise NotImplementedError

    _predict_log_density = _conditional_mean = _conditional_variance = _predict_mean_and_var


def rows(num_latents, seed=0, num_rows=7, classes=2):
    rng = np.random.default_rng(seed)
    Fmu, Fvar = (
        rng.normal(size=(num_rows, num_latents)),
        rng.uniform(0.2, 2, (num_rows, num_latents)),
    )
    return np.zeros((num_rows, 1)), Fmu, Fvar, rng.integers(0, classes, (num_rows, 1)).astype(float)


def density(x, mean, deviation):
    """Of a Gaussian; SciPy's takes a hundred times as long for a single number."""
    z = (x - mean) / deviation
    return math.exp(-z * z / 2) / (deviation * math.sqrt(2 * math.pi))


def test_the_expectation_of_any_sum_is_the_integral():
    X, Fmu, Fvar, Y = rows(2, num_rows=2)
    likelihood = Pair()
    found = likelihood.variational_expectations(X, Fmu, Fvar, Y)
    for mu, v, y, value in zip(Fmu, Fvar, Y, found):
        s = np.sqrt(v)

        def loss(g, f, y=y[0]):
            b = y - 0.1 - (0.3 + f - 0.5 * g), 1 - y + (-1 + 2 * g)
            return 0.7 * (max(b[0], 0) + 0.4 * max(b[1], 0))

        def weighted(g, f, mu=mu, s=s, loss=loss):
            return loss(g, f) * density(f, mu[0], s[0]) * density(g, mu[1], s[1])

        ends = [(m - 8 * d, m + 8 * d) for m, d in zip(mu, s)]
        # A kink keeps the quadrature from more digits.
        expected = -dblquad(weighted, *ends[0], *ends[1], epsabs=1e-7)[0]
        np.testing.assert_allclose(value, expected, rtol=1e-5)


@BOUNDS
def test_sites_of_any_sum_are_slopes(bound):
    X, Fmu, Fvar, Y = rows(2)
    likelihood = Pair(bound)
    closed = likelihood.sites(X, Fmu, Fvar, Y)
    for mine, theirs in zip(closed, sites_by_autodiff(likelihood, X, Fmu, Fvar, Y)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    assert not likelihood.is_alone and not has_hook(likelihood, "draw_sites")


@BOUNDS
def test_the_log_probability_is_the_expectation_at_a_point(bound):
    X, F, _, Y = rows(2)
    likelihood = Pair(bound)
    at_a_point = likelihood.variational_expectations(X, F, np.zeros_like(F), Y)
    # A variance of 1e-14 in the place of 0 moves a hinge by some 1e-8.
    np.testing.assert_allclose(likelihood.log_prob(X, F, Y), at_a_point, atol=1e-6)


@BOUNDS
def test_costs_of_ones_own_are_weights_of_rows(bound):
    """A cost of a class is a penalty of its rows, in a fit too."""
    X, Fmu, Fvar, Y = rows(1)
    cost = np.where(Y == 1, 3.0, 1.0)
    own, plain = Weighted(0.8, bound), Hinge(0.8, bound)
    np.testing.assert_allclose(
        own.variational_expectations(X, Fmu, Fvar, Y),
        cost[:, 0] * plain.variational_expectations(X, Fmu, Fvar, Y),
        rtol=1e-13,
    )
    data = make_data(30)
    weight = np.where(data[1][:, 0] == 1, 3.0, 1.0)
    models = [make_model(data, likelihood=one) for one in (own, plain)]
    gb.inference.CAVI(tol=1e-10).run(models[0], data)
    gb.inference.CAVI(tol=1e-10).run(models[1], data, sample_weight=weight)
    np.testing.assert_allclose(models[0].q_mu, models[1].q_mu, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("likelihood", ALONE, ids=NAMES)
def test_sites_of_the_best_local_variables_are_those_of_the_bound(likelihood):
    """At 1 / lambda = a / sqrt(alpha), a half of the cost."""
    L = likelihood.latent_dim or 1
    X, Fmu, Fvar, Y = rows(L, classes=3 if L == 3 else 2)
    bounded = gpflow.utilities.deepcopy(likelihood)
    bounded.bound = "augmented"
    _, square, cost = likelihood.moments(Fmu, Fvar, Y)
    found = likelihood.local_sites(cost / (2 * tf.sqrt(square)), Y)
    for mine, theirs in zip(found, sites(bounded, X, Fmu, Fvar, Y)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("likelihood", ALONE, ids=NAMES)
def test_the_bound_at_its_best_local_variables_is_the_augmented_one(likelihood):
    L = likelihood.latent_dim or 1
    X, Fmu, Fvar, Y = rows(L, classes=3 if L == 3 else 2)
    bounded = gpflow.utilities.deepcopy(likelihood)
    bounded.bound = "augmented"
    best = bound_at(likelihood, likelihood.moments(Fmu, Fvar, Y).square, Fmu, Fvar, Y)
    expected = bounded.variational_expectations(X, Fmu, Fvar, Y)
    np.testing.assert_allclose(best, expected, rtol=1e-12)


def test_draws_of_levels_have_the_means_of_their_local_variables():
    """E 1 / lambda = a / |b| given f, for each level, summed to the precision of f."""
    likelihood = ALONE[2]
    F, Y = np.array([[0.3], [-1.2]]), np.array([[1.0], [0.0]])
    many = np.tile(F, (40_000, 1, 1))
    drawn = likelihood.draw_sites(tf.constant(many), tf.constant(Y), tf.constant([1, 2])).w
    y = 2 * Y - 1
    t, b = likelihood.levels.t, likelihood.levels.b
    a = 1.3 / 2 * (1 + y * (1 - 2 * t)) / len(t)
    expected = (a / np.abs(1 - y * (F + b))).sum(axis=1)
    # 4 standard errors of the mean.
    error = 4 * drawn.numpy().std(axis=0) / 200
    assert (np.abs(drawn.numpy().mean(axis=0)[:, 0] - expected) < error[:, 0]).all()


def test_no_normaliser_where_none_is_known():
    with pytest.raises(ValueError, match="LevelHinge has no normalizer"):
        LevelHinge(normalizer=True)
    likelihood = LevelHinge()
    gpflow.set_trainable(likelihood.penalty, True)
    with pytest.raises(ValueError, match="goes to 0: choose a"):
        likelihood.check_learnable()


class Twice(Hinge):
    """Two hinges of each label."""

    def terms(self, y):
        return Terms(1.0, tf.concat([tf.ones_like(y), y], axis=-1), y)


def test_as_many_hinges_as_rows_of_W():
    data = make_data()
    model = make_model(data, likelihood=Twice(W=[[1.0], [1.0]], b=[0.0, 0.0]))
    assert gb.fit(model, data).converged
    with pytest.raises(ValueError, match=r"Twice.terms gives offset for 2 hinges, but W has shape"):
        gb.fit(make_model(data, likelihood=Twice()), data)
