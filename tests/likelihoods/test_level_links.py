"""The probability of which another row would not move the functions: fixed points and gradients."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special
from scipy.optimize import minimize

from gpflow_bsvm.likelihoods import (
    LevelHinge,
    Levels,
    OneVsRestLevelHinge,
    Ordinal,
    location_spread,
)

X, Y = np.zeros((2, 1)), np.array([[0.0], [1.0]])


def location(levels):
    """Q = 1."""
    return location_spread(levels, 0.0)


def independent(levels):
    """Q = T."""
    t = np.asarray(levels)
    return Levels(t, np.eye(len(t)), np.zeros(len(t)))


def both_losses(likelihood, m, v):
    """:return: expected log-likelihoods of y = 0 and y = 1, [2]."""
    pair = (tf.stack([part, part]) for part in (m, v))
    return likelihood.variational_expectations(X, *pair, Y)


def p_of(likelihood, m, v):
    return likelihood.predict_mean_and_var(X[:1], m[None], v[None])[0].numpy().item()


@pytest.mark.parametrize("P", [0.04, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("levels", [location(9), location_spread(17)])
def test_where_the_loss_is_smallest_it_is_the_truth(levels, P):
    likelihood = LevelHinge(levels=levels, link="stationary")
    v = tf.fill([levels.num_latents], tf.constant(0.3, tf.float64))

    def loss(m):
        m = tf.constant(m)
        with tf.GradientTape() as tape:
            tape.watch(m)
            value = -tf.reduce_sum(np.array([1 - P, P]) * both_losses(likelihood, m, v))
        return value.numpy(), tape.gradient(value, m).numpy()

    best = minimize(loss, np.zeros(levels.num_latents), jac=True, tol=1e-10)
    # The gradient's tolerance over the curvature, which is some .1.
    np.testing.assert_allclose(p_of(likelihood, tf.constant(best.x), v), P, atol=1e-7)
    integral = p_of(LevelHinge(levels=levels), tf.constant(best.x), v)
    assert P == 0.5 or abs(integral - P) > 1e-3  # it is not, if there is but this to learn from


@pytest.mark.parametrize("levels", [location(4), location_spread(5)])
def test_it_is_the_ratio_of_slopes(levels, rng):
    likelihood = LevelHinge(3.0, levels=levels, link="stationary")
    m, v = tf.constant(2 * rng.normal(size=levels.num_latents)), rng.uniform(0.05, 2, 2)
    v = tf.constant(v[: levels.num_latents])
    with tf.GradientTape() as tape:
        tape.watch(m)
        values = both_losses(likelihood, m, v)
    falling, rising = tape.jacobian(values, m).numpy()[:, 0]  # g_0 shifts all levels
    expected = np.log(-falling / rising)
    np.testing.assert_allclose(likelihood.log_odds(m[None], v[None])[0, 0], expected, rtol=1e-11)


def test_far_out_and_mirrored(rng):
    likelihood = LevelHinge(link="stationary")
    m, v = rng.normal(size=(5, 2)), rng.uniform(0.1, 1, (5, 2))
    odds = likelihood.log_odds(m, v)
    np.testing.assert_allclose(likelihood.log_odds(m * [-1, 1], v), -odds, rtol=1e-11)
    assert np.abs(likelihood.log_odds(m, 1e12 * np.ones_like(v))).max() < 1e-5
    far = likelihood.log_odds(np.array([[1e3, 0.0], [-1e3, 0.0]]), v[:2]).numpy()
    assert np.isfinite(far).all() and far[0] > 1e3 > -1e3 > far[1]


def test_of_several_classes_it_is_that_of_each(rng):
    joint, alone = OneVsRestLevelHinge(3, link="stationary"), LevelHinge(link="stationary")
    m, v = rng.normal(size=(4, 6)), rng.uniform(0.1, 1, (4, 6))
    p = [alone.probabilities(m[:, c : c + 2], v[:, c : c + 2]) for c in (0, 2, 4)]
    p = np.hstack(p) / np.sum(p, axis=0)
    np.testing.assert_allclose(joint.probabilities(m, v), p, rtol=1e-12)


def test_of_ordered_classes_it_is_that_of_each_threshold(rng):
    theta = np.array([-1.3, 0.2, 2.5])
    m, v = rng.normal(size=(5, 2)), rng.uniform(0.1, 1, (5, 2))
    above = [LevelHinge(link="stationary").probabilities(m - [t, 0], v) for t in theta]
    expected = -np.diff(np.hstack([np.ones((5, 1)), *above, np.zeros((5, 1))]))
    found = Ordinal(4, link="stationary", thresholds=theta).probabilities(m, v)
    np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("link", ["integral", "stationary"])
def test_each_class_against_the_others_is_a_machine_of_two_classes(link, rng):
    m, v = rng.normal(size=(4, 6)), rng.uniform(0.1, 1, (4, 6))
    Y = rng.integers(0, 3, (4, 1))
    alone = LevelHinge(link=link)
    parts = [(m[:, k : k + 2], v[:, k : k + 2]) for k in (0, 2, 4)]
    joint = OneVsRestLevelHinge(3, link=link)
    odds = [alone.log_odds(*part) for part in parts]
    np.testing.assert_allclose(joint.log_odds(m, v), np.hstack(odds), rtol=1e-11)
    X = np.zeros((4, 0))
    losses = [alone.variational_expectations(X, *p, 1.0 * (c == Y)) for c, p in enumerate(parts)]
    found = joint.variational_expectations(X, m, v, Y)
    np.testing.assert_allclose(found, sum(losses), rtol=1e-12)


def test_links_that_are_none():
    with pytest.raises(ValueError, match=r"one of 'integral', 'stationary', got 'probit'"):
        LevelHinge(link="probit")
    for levels in (independent((0.1, 0.5, 0.9)), independent([0.5])):
        with pytest.raises(ValueError, match="shift all levels equally, as in location_spread"):
            LevelHinge(levels=levels, link="stationary")


def error_of_the_integral(g, v, nodes):
    """:return: of P at latents [N, 2] of variances v, by the midpoint rule in logit t."""
    s = np.linspace(-40, 40, nodes)
    b, W, squares = location_spread(17).at(s)
    z, t = (b + g @ W.T) / np.sqrt(v @ squares.T), special.expit(s)
    fine = special.ndtr(z) @ (t * (1 - t)) * (s[1] - s[0])
    return fine - LevelHinge().probabilities(g, v).numpy()[:, 0]


@pytest.mark.parametrize(
    "g, v, error",
    [
        ([-0.022, -0.56], [4e-8, 0.66], 0.0218),
        ([-0.2116, 43.85], [1.005e-6, 3.895], 0.0255),  # the largest known of such variances
        ([-0.0076, 0.832], [5e-16, 1.5e10], 0.0312),  # the largest known
    ],
)
def test_a_known_location_of_uncertain_spread(g, v, error):
    """Where knots are too coarse: the largest errors of the link that are known."""
    found = error_of_the_integral(np.array([g]), np.array([v]), 400_001)
    np.testing.assert_allclose(found, error, atol=1e-4)


def test_no_error_of_the_integral_is_larger(rng):
    """None of many, where they are large: a location all but known near 0, any spread."""
    g = rng.normal(size=(1000, 2)) * [0.1, 2.0]
    v = 10.0 ** np.stack([rng.uniform(-18, 0, 1000), rng.uniform(-3, 12, 1000)], axis=-1)
    found = error_of_the_integral(g, v, 8001)
    # The midpoint rule has a hundredth between nodes: a step is off by .0025 / 2 at most.
    assert 0.02 < np.abs(found).max() < 0.0312 + 0.0013
