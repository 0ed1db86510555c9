"""Natural parameters and back, divergence, and steps between them."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from naturals import random_natural

from gpflow_bsvm.engine.natural import (
    Natural,
    blend,
    compiled_solve,
    root_by_rotation,
    root_of_covariance,
    solve,
    to_mean_and_root,
    to_natural,
)

SHAPES = pytest.mark.parametrize("shape", [(1, 1), (1, 6), (3, 5)])


@SHAPES
def test_natural_parameters_and_back(rng, shape):
    natural = random_natural(rng, *shape)
    mean, root = to_mean_and_root(natural)
    np.testing.assert_array_equal(root, np.tril(root))
    assert (np.diagonal(root, axis1=-2, axis2=-1) > 0).all()
    covariance = np.linalg.inv(natural.P)
    np.testing.assert_allclose(root @ np.swapaxes(root, -1, -2), covariance, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        mean, np.einsum("lij,lj->li", covariance, natural.h), rtol=1e-9, atol=1e-11
    )
    for back, original in zip(to_natural(mean, root), natural):
        np.testing.assert_allclose(back, original, rtol=1e-9, atol=1e-9)


def test_where_there_is_a_solution_there_is_a_mean_and_a_root(rng):
    found = 0
    for _ in range(50):  # beyond rounding, mostly in both orders of the columns
        rows = rng.normal(size=(2, 4))
        P = np.eye(4) + rows.T @ np.diag([1e17, 1e16]) @ rows
        natural = Natural(tf.constant(rng.normal(size=(1, 4))), tf.constant(P[None]))
        R = solve(natural).R
        if not np.isfinite(R).all():
            continue
        found += 1
        mean, root = to_mean_and_root(natural)
        assert np.isfinite(mean).all()
        np.testing.assert_array_equal(root, np.tril(root))
        assert (np.diagonal(root, axis1=-2, axis2=-1) > 0).all()
    assert found


def test_a_root_by_rotation_is_the_root(rng):
    natural = random_natural(rng, 3, 5)
    np.testing.assert_allclose(
        root_by_rotation(natural), to_mean_and_root(natural)[1], rtol=1e-9, atol=1e-11
    )


def test_a_covariance_that_rounding_made_indefinite_has_a_root(rng):
    rotations = np.linalg.qr(rng.normal(size=(2, 4, 4)))[0]
    values = np.array([[4.0, 1.0, 0.5, -1e-8], [4.0, 1.0, 0.5, 0.25]])
    covariance = rotations * values[:, None] @ np.swapaxes(rotations, -1, -2)
    root = root_of_covariance(tf.constant(covariance), tf.constant(1e-6, tf.float64)).numpy()
    np.testing.assert_array_equal(root, np.tril(root))
    assert (np.diagonal(root, axis1=-2, axis2=-1) > 0).all()
    least = np.maximum(values, 1e-6)
    expected = rotations * least[:, None] @ np.swapaxes(rotations, -1, -2)
    np.testing.assert_allclose(root @ np.swapaxes(root, -1, -2), expected, atol=1e-12)
    alone = root_of_covariance(tf.constant(covariance[1:]), tf.constant(1e-6, tf.float64))
    np.testing.assert_allclose(alone, np.linalg.cholesky(covariance[1:]), atol=1e-12)


@SHAPES
def test_solution_and_its_divergence(rng, shape):
    natural = random_natural(rng, *shape)
    R, c, kl = solve(natural)
    mean, root = to_mean_and_root(natural)
    np.testing.assert_allclose(
        tf.matmul(R, R, transpose_a=True), np.linalg.inv(natural.P), rtol=1e-9, atol=1e-11
    )
    np.testing.assert_allclose(
        tf.linalg.matvec(R, c, transpose_a=True), mean, rtol=1e-9, atol=1e-11
    )
    expected = gpflow.kullback_leiblers.gauss_kl(tf.transpose(mean), root)
    np.testing.assert_allclose(kl, expected, rtol=1e-10)
    for one, two in zip(compiled_solve(natural), (R, c, kl)):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-14)


def test_divergence_of_the_prior_from_itself_is_zero():
    assert solve(Natural(tf.zeros((2, 4), tf.float64), tf.eye(4, 4, [2], tf.float64))).kl == 0


@pytest.mark.parametrize("rho", [0.0, 1e-6, 0.3, 1.0])
def test_blend_is_a_convex_combination_that_stays_positive_definite(rng, rho):
    old = random_natural(rng, 2, 5)
    features = rng.normal(size=(2, 5, 3))
    P = features @ np.swapaxes(features, -1, -2)  # of rank 3: singular without the prior
    h = rng.normal(size=(2, 5))
    new = blend(old, Natural(h, tf.constant(P)), tf.constant(rho, tf.float64))
    np.testing.assert_allclose(
        new.P, (1 - rho) * old.P.numpy() + rho * (P + np.eye(5)), rtol=1e-13, atol=1e-13
    )
    np.testing.assert_allclose(new.h, (1 - rho) * old.h.numpy() + rho * h, rtol=1e-13, atol=1e-13)
    smallest = np.linalg.eigvalsh(new.P).min(axis=-1)
    bound = (1 - rho) * np.linalg.eigvalsh(old.P).min(axis=-1) + rho
    assert (smallest >= bound - 1e-10).all()
