"""The normaliser of a hinge: what evidence needs to know a penalty."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, OneVsRest

PENALTIES = (0.05, 0.5, 2.0, 8.0)


def largest_sum(likelihood, grid):
    """max over f of sum_y L(y | f), f on a grid that holds the ties and the margins."""
    classes = getattr(likelihood, "num_classes", 1)
    F = tf.constant(list(itertools.product(grid, repeat=classes)))
    labels = range(max(classes, 2))
    log_L = [likelihood.log_prob(None, F, tf.fill([len(F), 1], np.float64(y))) for y in labels]
    return float(tf.reduce_max(tf.reduce_sum(tf.exp(log_L), axis=0)))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_all_labels_together_have_probability_1_at_most(penalty, classes):
    grid = np.linspace(-2, 2, 9)
    likelihoods = [CrammerSinger(classes, penalty, normalizer=True)]
    if classes == 2:
        likelihoods.append(Hinge(penalty, normalizer=True))
    for likelihood in likelihoods:
        np.testing.assert_allclose(largest_sum(likelihood, grid), 1, rtol=1e-12)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_two_classes_have_the_normaliser_of_gold_and_sollich(penalty):
    expected = -np.log1p(np.exp(-2 * penalty))
    for likelihood in (Hinge(penalty, normalizer=True), CrammerSinger(2, penalty, normalizer=True)):
        np.testing.assert_allclose(likelihood.log_kappa(), expected, rtol=1e-14)


@pytest.mark.parametrize("bound", ["exact", "augmented"])
@pytest.mark.parametrize("make", [Hinge, CrammerSinger, OneVsRest])
def test_it_is_one_constant_for_a_datum(make, bound):
    """log_prob and expectations change by it, sites not at all."""
    random, classes = np.random.default_rng(0), () if make is Hinge else (3,)
    without, counted = (make(*classes, 2.0, bound, normalizer=on) for on in (False, True))
    L = classes[0] if classes else 1
    f, v = random.normal(size=(5, L)), random.uniform(0.1, 1, size=(5, L))
    Y = random.integers(0, L + (L == 1), size=(5, 1)).astype(float)
    constant = getattr(counted, "hinge", counted).log_kappa() * (L if make is OneVsRest else 1)
    for one, two in (
        (without.log_prob(None, f, Y), counted.log_prob(None, f, Y)),
        (
            without.variational_expectations(None, f, v, Y),
            counted.variational_expectations(None, f, v, Y),
        ),
    ):
        np.testing.assert_allclose(two, one + constant, rtol=1e-12)
    for one, two in zip(without.sites(None, f, v, Y), counted.sites(None, f, v, Y)):
        np.testing.assert_array_equal(one, two)
