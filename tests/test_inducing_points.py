"""Inducing points: distinct, reproducible, where the data are."""

import gpflow
import numpy as np
import pytest
from conftest import make_data
from scipy.spatial.distance import cdist

import gpflow_bsvm as gb
from gpflow_bsvm.inducing_points import kmeans, kmeans_plusplus_seeds, random_subset

FUNCTIONS = pytest.mark.parametrize("function", [random_subset, kmeans, kmeans_plusplus_seeds])
X = make_data(200, 3)[0]


def rows_of(Z, X) -> bool:
    return all((z == X).all(axis=1).any() for z in Z)


@FUNCTIONS
@pytest.mark.parametrize("num_inducing", [1, 7, 200])
def test_shape_type_and_seed(function, num_inducing):
    Z = function(X, num_inducing)
    assert Z.shape == (num_inducing, 3) and Z.dtype == X.dtype
    assert len(np.unique(Z, axis=0)) == num_inducing
    np.testing.assert_array_equal(Z, function(X, num_inducing))
    if num_inducing == 7:
        assert not np.array_equal(Z, function(X, num_inducing, seed=1))
    if function is not kmeans or num_inducing == 200:
        assert rows_of(Z, X)


@FUNCTIONS
def test_the_type_of_the_data_is_kept(function):
    assert function(X.astype(np.float32), 5).dtype == np.float32


@FUNCTIONS
def test_the_data_are_not_changed(function):
    before = X.copy()
    function(X, 10)[:] = 0
    np.testing.assert_array_equal(X, before)


@FUNCTIONS
def test_no_duplicates_from_duplicate_rows(function):
    repeated = np.repeat(X[:10], 30, axis=0)
    Z = function(repeated, 10)
    np.testing.assert_array_equal(np.unique(Z, axis=0), np.unique(X[:10], axis=0))
    with pytest.warns(UserWarning, match="only 10 of 25 inducing points"):
        Z = function(repeated, 25)
    assert len(Z) == 10
    gb.models.BSVM(gpflow.kernels.SquaredExponential(), gb.likelihoods.Hinge(), Z)


@FUNCTIONS
def test_a_constant_matrix_gives_one_point(function):
    with pytest.warns(UserWarning, match="only 1 of 4"):
        assert function(np.ones((20, 2)), 4).shape == (1, 2)


def test_kmeans_finds_the_centres_of_clear_clusters(rng):
    centres = np.array([[-10.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    data = np.concatenate([centre + 0.1 * rng.normal(size=(50, 2)) for centre in centres])
    Z = kmeans(data, 3)
    expected = data.reshape(3, 50, 2).mean(axis=1)
    for centre in expected:
        np.testing.assert_allclose(Z[np.argmin(cdist(Z, centre[None]))], centre, atol=1e-9)


def test_kmeans_covers_the_data_better_than_a_random_subset():
    def residual(Z):
        return np.square(cdist(X, Z).min(axis=1)).sum()

    assert residual(kmeans(X, 20)) < residual(kmeans_plusplus_seeds(X, 20))
    assert residual(kmeans(X, 20)) < 0.9 * residual(random_subset(X, 20))


def test_centres_of_integers_are_not_rounded():
    data = np.arange(40).reshape(20, 2) // 3
    Z = kmeans(data, 4)
    assert Z.dtype == np.float64
    assert not np.array_equal(Z, np.round(Z))


def test_kmeans_looks_at_a_subsample():
    Z = kmeans(X, 10, subsample=10)
    assert rows_of(Z, X)  # ten rows, ten centres
    assert len(kmeans(X, 30, subsample=10)) == 30  # never fewer rows than centres


@FUNCTIONS
@pytest.mark.parametrize(
    "data, num_inducing, match",
    [
        (X, 201, "num_inducing must be between 1 and the 200 rows of X, got 201"),
        (X, 0, "num_inducing must be between 1"),
        (X, -3, "num_inducing must be between 1"),
        (X[:, 0], 5, r"X must have shape \[N, .\].*X\[:, None\]"),
        (X[:0], 1, "X has no rows"),
        (np.where(X > 2, np.nan, X), 5, "X holds nan"),
        (np.where(X > 2, np.inf, X), 5, "X holds inf"),
    ],
)
def test_bad_input(function, data, num_inducing, match):
    with pytest.raises(ValueError, match=match):
        function(data, num_inducing)
