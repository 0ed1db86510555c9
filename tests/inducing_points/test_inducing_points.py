"""Inducing points: distinct, reproducible, where the data are."""

import gpflow
import numpy as np
import pytest
import tensorflow_probability as tfp
from helpers import make_data
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

import gpflow_bsvm as gb
from gpflow_bsvm.inducing_points import greedy_variance, kmeans, reselect
from gpflow_bsvm.papers.wenzel2017 import afkmc2, gaussian_mixture

FUNCTIONS = pytest.mark.parametrize("function", [kmeans, afkmc2, gaussian_mixture])
X = make_data(200, 3)[0]


def random_subset(X, number, seed=0):
    return np.random.default_rng(seed).permutation(X)[:number]


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
    if function not in (kmeans, gaussian_mixture) or num_inducing == 200:
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


@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
def test_a_mixture_finds_the_means_of_clear_clusters(rng, covariance):
    centres = np.array([[-10.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    data = np.concatenate([centre + rng.normal(size=(50, 2)) for centre in centres])
    Z = gaussian_mixture(data, 3, covariance=covariance)
    for centre in data.reshape(3, 50, 2).mean(axis=1):
        np.testing.assert_allclose(Z[np.argmin(cdist(Z, centre[None]))], centre, atol=1e-6)


def test_a_mixture_that_does_not_converge_says_so():
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        gaussian_mixture(X, 10, max_iter=1)
    for bad, message in (
        ({"covariance": "round"}, "covariance must be one of 'full', 'tied', 'diag', 'spherical'"),
        ({"max_iter": 0}, "max_iter must be at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            gaussian_mixture(X, 10, **bad)


def test_kmeans_covers_the_data_better_than_a_random_subset():
    def residual(Z):
        return np.square(cdist(X, Z).min(axis=1)).sum()

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
        (X, 0, "num_inducing must be at least 1"),
        (X, -3, "num_inducing must be at least 1"),
        (X, 5.0, "num_inducing must be a whole number"),
        (X[:, 0], 5, r"X must have shape \[N, .\].*X\[:, None\]"),
        (X[:0], 1, "X has no rows"),
        (np.where(X > 2, np.nan, X), 5, "X holds nan"),
        (np.where(X > 2, "nan", "a"), 5, "X must hold numbers, got <U3: encode words"),
        (np.where(X > 2, np.inf, X), 5, "X holds inf"),
    ],
)
def test_bad_input(function, data, num_inducing, match):
    with pytest.raises(ValueError, match=match):
        function(data, num_inducing)


# --- AFK-MC2, greedy conditional variance, exchange -----------------------------------------------


def test_afkmc2_gives_distinct_rows_far_apart():
    X = make_data(400)[0]
    Z = afkmc2(X, 20, seed=1)
    assert Z.shape == (20, 2) and len(np.unique(Z, axis=0)) == 20
    assert all((row == X).all(axis=1).any() for row in Z)
    spread = lambda Z: cdist(X, Z).min(axis=1).mean()  # noqa: E731
    means = [
        np.mean([spread(f(X, 20, seed=s)) for s in range(10)]) for f in (afkmc2, random_subset)
    ]
    assert means[0] < means[1]
    np.testing.assert_array_equal(Z, afkmc2(X, 20, seed=1))


@pytest.mark.drill
@pytest.mark.slow
def test_chains_of_afkmc2_draw_by_squared_distance():
    """A long chain has the distribution of k-means++: of the second point, given the first."""
    X = np.array([[0.0], [1.0], [3.0]])
    drawn = np.array([afkmc2(X, 2, seed=seed, chain_length=60)[:, 0] for seed in range(3000)])
    # Pairs {0, 1}, {0, 3}, {1, 3}: the first is uniform, the second by squared distance.
    expected = np.array([1 / 10 + 1 / 5, 9 / 10 + 9 / 13, 4 / 5 + 4 / 13]) / 3
    total = drawn.sum(axis=1)
    shares = np.array([np.mean(total == value) for value in (1, 3, 4)])
    np.testing.assert_allclose(shares, expected, atol=4 * np.sqrt(0.25 / 3000))


def greedy_by_hand(X, kernel, num_inducing, weight):
    """The conditional variances from scratch at every step."""
    chosen = []
    for _ in range(num_inducing):
        Kff = kernel(X).numpy()
        if chosen:
            cross = Kff[:, chosen]
            Kff = Kff - cross @ np.linalg.solve(Kff[np.ix_(chosen, chosen)], cross.T)
        variance = np.where(np.isin(np.arange(len(X)), chosen), -1, weight * np.diag(Kff))
        chosen.append(int(variance.argmax()))
    return X[chosen]


@pytest.mark.parametrize("weighted", [False, True])
def test_greedy_variance_step_by_step(weighted):
    X = np.unique(make_data(60)[0], axis=0)  # in the order in which ties are broken
    weight = np.random.default_rng(0).uniform(0.1, 2, 60) if weighted else np.ones(60)
    kernel = gpflow.kernels.SquaredExponential(2.0, lengthscales=0.7) + gpflow.kernels.Linear(0.5)
    Z = greedy_variance(X, 12, kernel, tol=0, weight=weight)
    np.testing.assert_array_equal(Z, greedy_by_hand(X, kernel, 12, weight))


@pytest.mark.slow
def test_greedy_variance_chooses_how_many():
    X, _ = make_data(200)
    kernel = gpflow.kernels.SquaredExponential(2.0, lengthscales=1.0)
    sizes = []
    for tol in (0.3, 0.1, 0.01):
        Z = greedy_variance(X, 200, kernel, tol=tol)
        cross, Kuu = kernel(X, Z).numpy(), kernel(Z).numpy()
        left = 2.0 * 200 - np.trace(cross @ np.linalg.solve(Kuu, cross.T))
        assert left <= tol * 400
        sizes.append(len(Z))
    assert sizes == sorted(sizes) and sizes[-1] < 100
    order = np.random.default_rng(0).permutation(200)
    np.testing.assert_array_equal(
        greedy_variance(X[order], 30, kernel), greedy_variance(X, 30, kernel)
    )


def test_greedy_variance_goes_where_the_weight_is():
    X = np.linspace(-3, 3, 121)[:, None]
    weight = np.exp(-0.5 * np.square(X[:, 0] / 0.3))
    kernel = gpflow.kernels.SquaredExponential(lengthscales=0.3)
    assert abs(greedy_variance(X, 5, kernel, weight=weight)).mean() < 0.7
    assert abs(greedy_variance(X, 5, kernel)).mean() > 1.2


def test_greedy_variance_adds_up_the_weights_of_equal_rows():
    X, _ = make_data(30)
    weight = np.arange(30.0)
    kernel = gpflow.kernels.SquaredExponential()
    once = greedy_variance(X, 8, kernel, weight=weight)
    apart = greedy_variance(np.vstack([X, X]), 8, kernel, weight=[*np.zeros(30), *weight])
    np.testing.assert_array_equal(apart, once)


def test_greedy_variance_refuses_kernels_without_variance():
    X = np.arange(12.0).reshape(6, 2)
    for rows in (0 * X, 1e200 * X):
        with pytest.raises(ValueError, match=r"Linear must have finite .*, and a positive"):
            greedy_variance(rows, 3, gpflow.kernels.Linear())


@pytest.mark.parametrize("tol", [1.0, -0.1, np.nan])
def test_greedy_variance_refuses_a_tolerance_that_selects_nothing(tol):
    with pytest.raises(ValueError, match=r"tol must be in \[0, 1\), got"):
        greedy_variance(X, 5, gpflow.kernels.SquaredExponential(), tol=tol)


def test_greedy_variance_refuses_several_outputs():
    kernel = gpflow.kernels.SharedIndependent(gpflow.kernels.SquaredExponential(), 2)
    with pytest.raises(ValueError, match="single output, got SharedIndependent"):
        greedy_variance(make_data(30)[0], 8, kernel)


@pytest.mark.slow
@pytest.mark.parametrize("whiten", [True, False])
def test_exchange_keeps_predictions_at_the_new_points(whiten):
    X, Y = make_data()
    mean_function = gpflow.functions.Linear([[0.4], [0.2]])
    kernel = gpflow.kernels.SquaredExponential(2.0)
    model = gb.models.BSVM(
        kernel, gb.likelihoods.Hinge(), X[:8].copy(), mean_function=mean_function, whiten=whiten
    )
    gb.fit(model, (X, Y))
    Z = X[20:32]
    before = [part.numpy() for part in model.predict_f(Z)]
    gb.inducing_points.exchange(model, Z)
    for one, other in zip(model.predict_f(Z), before):
        np.testing.assert_allclose(one, other, atol=1e-4)  # jitter 1e-6 on both sides
    assert model.q_mu.shape == (12, 1)
    gb.fit(model, (X, Y))


@pytest.mark.slow
def test_exchange_by_more_points_changes_no_prediction():
    X, Y = make_data()
    model = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(2.0), gb.likelihoods.Hinge(), X[:8].copy()
    )
    gb.fit(model, (X, Y))
    before = [part.numpy() for part in model.predict_f(X)]
    gb.inducing_points.exchange(model, X[:14])
    for one, other in zip(model.predict_f(X), before):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_exchange_keeps_priors_and_transforms():
    normal = tfp.distributions.Normal(np.float64(0), np.float64(1))
    sigmoid = tfp.bijectors.Sigmoid(np.float64(-9), np.float64(9))
    model = gb.models.BSVM(gpflow.kernels.Matern32(), gb.likelihoods.Hinge(), X[:8].copy())
    Z = gpflow.Parameter(X[:8], transform=sigmoid, prior=normal, prior_on="unconstrained")
    model.inducing_variable.Z = Z
    gpflow.set_trainable(model.q_mu, False)
    gb.inducing_points.exchange(model, X[8:20])
    new = model.inducing_variable.Z
    assert new.transform is sigmoid and new.prior is normal and new.prior_on == Z.prior_on
    np.testing.assert_allclose(new, X[8:20])
    assert not model.q_mu.trainable and new.trainable


def test_exchange_that_fails_changes_nothing():
    model = gb.models.BSVM(gpflow.kernels.Polynomial(), gb.likelihoods.Hinge(), X[:8].copy())
    model.q_mu.assign(np.ones((8, 1)))
    before = model.predict_f(X)
    with pytest.raises(ValueError, match="the kernel is not finite at the inducing points"):
        gb.inducing_points.exchange(model, 1e60 * X[8:16])
    np.testing.assert_array_equal(model.predict_f(X), before)


def test_exchange_needs_a_model_of_this_package():
    model = gpflow.models.SVGP(gpflow.kernels.Matern32(), gb.likelihoods.Hinge(), X[:8].copy())
    for function, *rows in ((gb.inducing_points.exchange, X), (gb.inducing_points.reselect, X, X)):
        with pytest.raises(TypeError, match=r"SVGP has no closed-form steps: use .*\.BSVM"):
            function(model, *rows)


@pytest.mark.slow
def test_exchange_keeps_what_is_not_trainable():
    X, Y = make_data()
    model = gb.models.BSVM(gpflow.kernels.Matern32(), gb.likelihoods.Hinge(), X[:8].copy())
    gb.fit(model, (X, Y))
    gpflow.set_trainable(model.q_mu, False)
    gpflow.set_trainable(model.inducing_variable, False)
    gb.inducing_points.exchange(model, X[:10])
    flags = [p.trainable for p in (model.q_mu, model.q_sqrt, model.inducing_variable.Z)]
    assert flags == [False, True, False]
    with pytest.raises(ValueError, match="max_inducing must be at least 1, got 0"):
        reselect(model, (X, Y), 0)


def test_exchange_where_rounding_exceeds_the_jitter():
    X, Y = make_data(200)
    kernel = gpflow.kernels.SquaredExponential(1e12, lengthscales=3.0)
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(), X[:8].copy())
    model.natgrad_step((X, Y))
    before = model.predict_f(X[8:88])[0]
    with pytest.warns(UserWarning, match="Kuu needed a jitter"):
        gb.inducing_points.exchange(model, X[8:88])
    # The jitter of Kuu is 1e-3, and 1e-9 of the prior's variance; f changes by as much.
    np.testing.assert_allclose(model.predict_f(X[8:88])[0], before, atol=1e-6 * np.ptp(before))


def test_exchange_refuses():
    X, _ = make_data()
    model = gb.models.BSVM(gpflow.kernels.SquaredExponential(), gb.likelihoods.Hinge(), X[:8])
    with pytest.raises(ValueError, match="X has 3 columns"):
        gb.inducing_points.exchange(model, np.zeros((4, 3)))
    with pytest.raises(ValueError, match="rows 0 and 1 of Z are equal"):
        gb.inducing_points.exchange(model, np.zeros((2, 2)))
    variable = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(X[:6].copy())
    )
    kernel = gpflow.kernels.SharedIndependent(gpflow.kernels.SquaredExponential(), 2)
    other = gb.models.BSVM(kernel, gb.likelihoods.Hinge(), variable, num_latent_gps=2)
    with pytest.raises(ValueError, match="only plain InducingPoints can be exchanged"):
        gb.inducing_points.exchange(other, X[:3])
    with pytest.raises(ValueError, match="only plain InducingPoints can be exchanged"):
        gb.inducing_points.reselect(other, make_data())


@pytest.mark.drill
@pytest.mark.slow
def test_reselect_keeps_predictions_and_training_goes_on():
    X, Y = make_data(200)
    mean_function = gpflow.functions.Linear([[0.4], [0.2]])
    model = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(2.0),
        gb.likelihoods.Hinge(bound="exact"),
        X[:30].copy(),
        mean_function=mean_function,
    )
    gb.fit(model, (X, Y))
    before = model.elbo((X, Y))
    mean, variance = model.predict_f(X)
    Z = reselect(model, (X, Y), 20)
    assert len(Z) <= 20 and all((row == X).all(axis=1).any() for row in Z)
    rows = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in Z]
    for part, was in zip(model.predict_f(Z), (mean, variance)):
        np.testing.assert_allclose(part, np.asarray(was)[rows], atol=1e-4)  # jitter
    gb.inference.VEM(max_steps=2).run(model, (X, Y))
    assert model.elbo((X, Y)) > before  # with two thirds of the points, but a learned kernel


@pytest.mark.slow
def test_reselect_goes_where_the_classes_meet():
    X = np.linspace(-3, 3, 301)[:, None]
    Y = (X > 0).astype(float)
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=0.5)
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(bound="exact"), X[::10].copy())
    gb.fit(model, (X, Y))
    Z = reselect(model, (X, Y), 6)
    assert np.abs(Z).mean() < np.abs(greedy_variance(X, 6, kernel)).mean()


@pytest.mark.slow
def test_reselect_subsamples_and_weights():
    X, Y = make_data(200)
    model = gb.models.BSVM(gpflow.kernels.SquaredExponential(), gb.likelihoods.Hinge(), X[:9])
    Z = reselect(model, (X, Y), subsample=50, seed=3)
    seen = np.random.default_rng(3).choice(200, 50, replace=False)
    assert all((row == X[seen]).all(axis=1).any() for row in Z)
    weight = np.where(np.arange(200) < 100, 1.0, 0.0)
    Z = reselect(model, (X, Y), sample_weight=weight)
    assert all((row == X[:100]).all(axis=1).any() for row in Z)
