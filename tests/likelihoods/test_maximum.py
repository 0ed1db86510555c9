"""The largest of independent normal variables: its moments by quadrature, sampling, and for two."""

import numpy as np
import pytest
import tensorflow as tf
from multiclass import above, draw, integral
from scipy import stats

from gpflow_bsvm.likelihoods.maximum import maximum, moments_of_maximum


def expected_maximum(mean, variance):
    """E max_j f_j = low + int_low^high (1 - F), piece by piece."""
    scale = np.sqrt(variance)
    low, high = (mean - 9 * scale).max(), (mean + 9 * scale).max()
    breaks = np.unique(np.clip(np.concatenate([mean + k * scale for k in (-8, 0, 8)]), low, high))
    pieces = integral(breaks[:-1], breaks[1:], lambda u: above(u, mean, scale))
    return breaks[0] + pieces.sum()


@pytest.mark.parametrize("num_classes", [2, 3, 10])
@pytest.mark.parametrize("spread", [1.0, 3.0, 6.0])
def test_expected_maximum(num_classes, spread):
    _, mean, variance, _ = draw(num_classes, spread=spread)
    expected = [expected_maximum(*row) for row in zip(mean, variance)]
    np.testing.assert_allclose(
        maximum(*map(tf.constant, (mean, variance))).mean, expected, atol=1e-8
    )


@pytest.mark.parametrize("num_classes", [3, 10, 100, 1000])
@pytest.mark.parametrize("ratio", [1.0, 30.0])
def test_nodes_suffice_for_any_number_of_classes_and_scales(num_classes, ratio, monkeypatch):
    """Classes alike make F sharp near its median, unlike scales make it sharp anywhere."""
    random = np.random.default_rng(num_classes)
    mean = tf.constant(random.normal(size=(3, num_classes)))
    variance = tf.constant(ratio ** (2 * random.uniform(-0.5, 0.5, size=(3, num_classes))))
    few = maximum(mean, variance)
    monkeypatch.setattr("gpflow_bsvm.likelihoods.maximum.NODES", 400)
    monkeypatch.setattr("gpflow_bsvm.likelihoods.maximum.MOST_NODES", 1000)
    many = maximum(mean, variance)
    for one, other in zip(few, many):
        np.testing.assert_allclose(one, other, atol=1e-9 * max(1, ratio))


def test_moments_of_the_maximum_by_sampling():
    _, mean, variance, _ = draw(5, num_rows=1)
    draws = mean + np.sqrt(variance) * np.random.default_rng(0).normal(size=(1_000_000, 5))
    largest = draws.max(axis=1)
    first, second = moments_of_maximum(tf.constant(mean), tf.constant(variance))
    assert abs(largest.mean() - first[0]) < 4 * largest.std() / 1000
    squares = (largest - largest.mean()) ** 2
    assert abs(squares.mean() - second[0]) < 4 * squares.std() / 1000


def test_two_classes_are_the_binary_formulas():
    _, mean, variance, _ = draw(2, spread=3.0)
    gap, scale = mean[:, 1] - mean[:, 0], np.sqrt(variance.sum(axis=1))
    p = maximum(tf.constant(mean), tf.constant(variance))
    np.testing.assert_allclose(p.probability[:, 1], stats.norm.cdf(gap / scale), atol=1e-9)
    density = stats.norm.pdf(gap / scale) / scale
    np.testing.assert_allclose(p.curvature, np.stack([density, density], axis=1), atol=1e-8)
