"""Numbers, quantiles, ordered classes and one class: closed forms against quadrature and peers."""

import itertools

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import make_data
from scipy import integrate, stats
from sklearn.svm import LinearSVR, OneClassSVM

import gpflow_bsvm as gb
from gpflow_bsvm.engine.contracts import features_of
from gpflow_bsvm.inference import CAVI, ECM, ML2, SVI, VEM
from gpflow_bsvm.likelihoods import (
    EpsilonInsensitive,
    LevelHinge,
    OneClass,
    Ordinal,
    Quantile,
    location_spread,
    sites_by_autodiff,
)
from gpflow_bsvm.sampling import Gibbs

#: penalty, epsilon, mean and variance of f, and y: near, in the tails, and where one part is tiny.
CASES = [
    (2.0, 0.1, 0.3, 0.5, 1.0),
    (10.0, 0.5, 0.0, 1e-3, 0.2),
    (0.5, 1e-3, -2.0, 4.0, 30.0),
    (50.0, 0.01, 0.0, 2.0, -1.0),
    (3.0, 2.0, 0.0, 1e-6, 1.9),
    (1e3, 0.01, 0.0, 1.0, 0.3),
]
THREE = location_spread(3)


def column(number):
    return np.array([[float(number)]])


def noise_density(e, C, epsilon):
    return np.exp(-C * np.maximum(np.abs(e) - epsilon, 0)) / (2 * (epsilon + 1 / C))


def by_pieces(function, m, s, kinks):
    """The integral of a function times N(m, s^2), between places where it is smooth."""
    ends = [m - 12 * s, m - s, m, m + s, m + 12 * s]
    ends = sorted(ends + [k for k in kinks if abs(k - m) < 12 * s])
    parts = itertools.pairwise(ends)
    weighted = lambda f: function(f) * stats.norm.pdf(f, m, s)  # noqa: E731
    return sum(
        integrate.quad(weighted, *part, epsabs=0, epsrel=1e-11, limit=200)[0] for part in parts
    )


@pytest.mark.parametrize("C, epsilon, m, v, y", CASES)
def test_the_predictive_density_is_the_integral(C, epsilon, m, v, y):
    kinks = [y + k for k in (-30 / C, -3 / C, -epsilon, 0, epsilon, 3 / C, 30 / C)]
    expected = by_pieces(lambda f: noise_density(y - f, C, epsilon), m, v**0.5, kinks)
    likelihood = EpsilonInsensitive(C, epsilon)
    found = likelihood.predict_log_density(column(0), column(m), column(v), column(y))
    np.testing.assert_allclose(found, [np.log(expected)], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("C, epsilon, m, v, y", CASES)
def test_the_mean_loss_is_the_integral(C, epsilon, m, v, y):
    def log_p(f):
        return np.log(noise_density(0, C, epsilon)) - C * np.maximum(abs(y - f) - epsilon, 0)

    expected = by_pieces(log_p, m, v**0.5, [y - epsilon, y + epsilon])
    likelihood = EpsilonInsensitive(C, epsilon)
    found = likelihood.variational_expectations(column(0), column(m), column(v), column(y))
    np.testing.assert_allclose(found, [expected], rtol=1e-9)


@pytest.mark.slow
def test_numbers_have_a_density_and_quantiles():
    likelihood, m, v = EpsilonInsensitive(3.0, 0.4), column(0.2), column(0.3)
    y = np.linspace(-12, 12, 200_001)
    same = np.ones((len(y), 1))
    p = np.exp(likelihood.predict_log_density(same, m * same, v * same, y[:, None]))
    # Simpson's rule, whose error is that of kinks which the Gaussian has smoothed.
    total, mean = (integrate.simpson(p * part, x=y) for part in (1, y))
    np.testing.assert_allclose([total, mean], [1, 0.2], rtol=1e-9)
    _, variance = likelihood.predict_mean_and_var(column(0), m, v)
    np.testing.assert_allclose(
        integrate.simpson(p * (y - 0.2) ** 2, x=y), variance[0, 0], rtol=1e-9
    )
    below = integrate.cumulative_simpson(p, x=y, initial=0)
    cdf = likelihood.predict_cdf(m * same, v * same, y[:, None])
    np.testing.assert_allclose(cdf[:, 0], below, atol=1e-9)
    levels = [1e-6, 0.05, 0.5, 0.99]
    quantiles = likelihood.predict_quantiles(m, v, levels)
    assert quantiles.shape == (1, 1, 4)
    again = [likelihood.predict_cdf(m, v, column(q))[0, 0] for q in quantiles[0, 0]]
    np.testing.assert_allclose(again, levels, rtol=1e-8)


@pytest.mark.parametrize("v", [0.0081, 0.01, 0.0091])
def test_a_tube_of_no_width_has_no_gaps(v):
    """An epsilon that is learned from Laplace noise may fall below all rounding errors."""
    y = np.linspace(-3, 3, 6001)[:, None]
    m = np.zeros_like(y)
    thin = EpsilonInsensitive(1.1, 2e-18)
    near = EpsilonInsensitive(1.1, 1e-10)
    found = thin.predict_cdf(m, m + v, y)
    np.testing.assert_allclose(found, near.predict_cdf(m, m + v, y), atol=1e-9)  # of the widths
    assert np.isfinite(thin.predict_log_density(m, m, m + v, y)).all()


LIKELIHOODS = {
    "numbers": lambda bound: EpsilonInsensitive(1.7, 0.3, bound),
    "tied quantiles": lambda bound: Quantile((0.1, 0.4, 0.9), 1.3, bound),
    "quantiles": lambda bound: Quantile((0.1, 0.4, 0.9), 1.3, bound, tied=False),
    "ordered": lambda bound: Ordinal(4, 1.3, bound, THREE, thresholds=[-1.0, 0.2, 3.0]),
    "one class": lambda bound: OneClass(1.3, bound),
}


def labels_for(name, number):
    y = np.random.default_rng(1).normal(size=(number, 1))
    return {"ordered": np.arange(number)[:, None] % 4.0, "one class": np.ones((number, 1))}.get(
        name, y
    )


@pytest.mark.parametrize("bound", ["exact", "augmented"])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_sites_are_slopes(name, bound):
    likelihood, rng = LIKELIHOODS[name](bound), np.random.default_rng(0)
    shape = (8, likelihood.latent_dim or 1)
    Fmu, Fvar, X = rng.normal(size=shape), rng.uniform(0.2, 2, shape), np.zeros((8, 1))
    Y = labels_for(name, 8)
    closed = likelihood.sites(X, Fmu, Fvar, Y)
    for mine, theirs in zip(closed, sites_by_autodiff(likelihood, X, Fmu, Fvar, Y)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-10)
    at_a_point = likelihood.variational_expectations(X, Fmu, np.zeros_like(Fvar), Y)
    # A variance of 1e-14 in the place of 0 moves a hinge by some 1e-8.
    np.testing.assert_allclose(likelihood.log_prob(X, Fmu, Y), at_a_point, atol=1e-6)


def test_several_outputs_are_one_after_the_other():
    rng, likelihood = np.random.default_rng(0), EpsilonInsensitive()
    Fmu, Fvar, Y, X = (
        rng.normal(size=(5, 2)),
        rng.uniform(0.2, 2, (5, 2)),
        rng.normal(size=(5, 2)),
        np.zeros((5, 1)),
    )
    for function in (likelihood.variational_expectations, likelihood.predict_log_density):
        each = [function(X, Fmu[:, [k]], Fvar[:, [k]], Y[:, [k]]) for k in range(2)]
        np.testing.assert_allclose(function(X, Fmu, Fvar, Y), tf.add_n(each), rtol=1e-12)


def test_quantiles_are_asymmetric_laplace_densities():
    """Of one level, independent: normalised, and its level is where it says."""
    likelihood = Quantile((0.2,), 1.5, tied=False)
    f, y = column(0.7), np.linspace(-60, 60, 400_001)
    p = np.exp(likelihood.log_prob(np.zeros((1, 1)), f, y[:, None]))
    # The kink at f is a point of the grid to 1e-4.
    np.testing.assert_allclose(integrate.trapezoid(p, y), 1, rtol=1e-6)
    np.testing.assert_allclose(integrate.trapezoid(p * (y < 0.7), y), 0.2, atol=1e-4)


def test_quantiles_that_share_functions_are_weighted():
    """The product of K densities to the power Q / K, normalizer included."""
    likelihood, tau = Quantile((0.1, 0.4, 0.9), 1.5), np.array([0.1, 0.4, 0.9])
    g, y = np.array([[0.3, -0.2]]), np.array([[1.1]])
    e = y[0] - likelihood.functions(g).numpy()[0, 0, :3]
    each = np.log(1.5 * tau * (1 - tau)) - 1.5 * e * (tau - (e < 0))
    found = likelihood.log_prob(np.zeros((1, 1)), g, y).numpy().item()
    np.testing.assert_allclose(found, 2 / 3 * each.sum())
    np.testing.assert_allclose(likelihood.log_kappa(), 2 / 3 * np.log(1.5 * tau * (1 - tau)).sum())


def test_tied_quantiles_do_not_cross():
    likelihood = Quantile((0.1, 0.3, 0.9), scale=0.5)
    g = np.random.default_rng(0).normal(size=(50, 2))
    q, variance = likelihood.predict_mean_and_var(np.zeros((50, 1)), g, np.ones_like(g))
    rises = (np.diff(q, axis=1) > 0).all(axis=1)
    np.testing.assert_array_equal(rises, 0.5 + g[:, 1] > 0)
    np.testing.assert_allclose(variance, np.tile(1 + np.log([1 / 9, 3 / 7, 9.0]) ** 2, (50, 1)))


def test_two_ordered_classes_are_levels():
    one, two = Ordinal(2, 1.3, levels=THREE, thresholds=[0.0]), LevelHinge(1.3, levels=THREE)
    rng = np.random.default_rng(0)
    Fmu, Fvar, X = rng.normal(size=(6, 2)), rng.uniform(0.2, 2, (6, 2)), np.zeros((6, 1))
    Y = np.array([0, 1, 1, 0, 1, 0.0])[:, None]
    for a, b in zip(one.sites(X, Fmu, Fvar, Y), two.sites(X, Fmu, Fvar, Y)):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    for name in ("variational_expectations", "predict_log_density"):
        a, b = (getattr(each, name)(X, Fmu, Fvar, Y) for each in (one, two))
        np.testing.assert_allclose(a, b, rtol=1e-12)
    np.testing.assert_allclose(one.probabilities(Fmu, Fvar)[:, 1:], two.probabilities(Fmu, Fvar))


def test_ordered_probabilities():
    likelihood = Ordinal(5, thresholds=[-3.0, -1.0, 0.5, 2.0])
    rng = np.random.default_rng(0)
    Fmu, Fvar = 3 * rng.normal(size=(40, 2)), rng.uniform(0.01, 2, (40, 2))
    P = likelihood.probabilities(Fmu, Fvar).numpy()
    assert (P > 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-13)
    above = [LevelHinge().probabilities(Fmu - [theta, 0], Fvar)[:, 0] for theta in (-3, -1, 0.5, 2)]
    np.testing.assert_allclose(1 - np.cumsum(P, axis=1)[:, :-1], np.transpose(above), atol=1e-13)
    high, low = (
        likelihood.probabilities(np.array([[sign * 30.0, 0]]), column(1) * [1, 1])
        for sign in (1, -1)
    )
    assert high[0, 0] > 0 and low[0, 4] > 0  # far out neither end is cut off


def test_the_mode_is_the_svr():
    X, _ = make_data(40)
    y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    kernel = gpflow.kernels.SquaredExponential(lengthscales=0.8)
    likelihood = EpsilonInsensitive(1.5, 0.1, bound="augmented")
    model = gb.models.BSVM(kernel, likelihood, X[:6].copy())
    ECM(max_steps=5000, tol=1e-13).run(model, (X, y[:, None]))
    Phi = features_of(model, X).phi[0].numpy()
    svr = LinearSVR(C=1.5, epsilon=0.1, fit_intercept=False, tol=1e-12, max_iter=10**6)
    expected = svr.fit(Phi, y).predict(Phi)
    np.testing.assert_allclose(model.predict_f(X)[0][:, 0], expected, atol=1e-5)  # where ECM stops


@pytest.mark.slow
def test_the_mode_is_the_one_class_svm():
    X, _ = make_data(40)
    kernel = gpflow.kernels.SquaredExponential(lengthscales=1.2)
    K = kernel(X).numpy()
    svm = OneClassSVM(kernel="precomputed", nu=0.3, tol=1e-12).fit(K)
    rho = -svm.intercept_[0]
    model = gb.models.BSVM(kernel, OneClass(1 / rho, bound="augmented"), X.copy())
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-10)):
        ECM(max_steps=20_000, tol=1e-14).run(model, (X, np.ones((40, 1))))
        f = model.predict_f(X)[0].numpy()[:, 0]
    expected = (svm.decision_function(K) + rho) / rho
    np.testing.assert_allclose(f, expected, atol=1e-4)  # where ECM stops


ALGORITHMS = {
    "CAVI": CAVI(),
    "VEM": VEM(max_steps=3),
    "SVI": SVI(max_steps=30, batch_size=20),
    "ML2": ML2(max_steps=30, batch_size=20),
}


def fits():
    """All by CAVI in `make test`, each by another algorithm in CI, all by all with the drills."""
    for number, name in enumerate(LIKELIHOODS):
        yield pytest.param(name, "CAVI")
        for other, algorithm in enumerate(("VEM", "SVI", "ML2")):
            marks = [pytest.mark.slow] + [pytest.mark.drill] * (number % 3 != other)
            yield pytest.param(name, algorithm, marks=marks)


@pytest.mark.parametrize(("name", "algorithm"), [*fits()])
def test_they_are_fitted(name, algorithm):
    X, _ = make_data(60)
    likelihood = LIKELIHOODS[name]("exact")
    model = gb.models.BSVM(gpflow.kernels.SquaredExponential(), likelihood, X[:8].copy())
    Y = labels_for(name, 60)
    history = ALGORITHMS[algorithm].run(model, (X, Y))
    assert np.isfinite(history.elbo).all()
    if algorithm == "CAVI":  # a pass for what it says
        np.testing.assert_allclose(history.elbo[-1], model.elbo((X, Y)), rtol=1e-9)


def test_draws_are_about_q():
    """Of numbers: a sum of alone hinges, of which Gibbs draws."""
    X, _ = make_data(30)
    Y = np.sin(X[:, :1])
    model = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(), EpsilonInsensitive(4.0), X[:5].copy()
    )
    CAVI(tol=1e-8).run(model, (X, Y))
    samples = Gibbs(num_draws=500, burn_in=100).run(model, (X, Y))
    mean, variance = model.predict_f(X)
    # q is an approximation, and draws have an error: within a third of a deviation.
    found = samples.predict_f(X)[0]
    assert np.abs(found - mean).max() < np.sqrt(variance).max() / 3


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: EpsilonInsensitive(epsilon=0.0), "epsilon must be a positive"),
        (lambda: EpsilonInsensitive(penalty=-1), "penalty must be a positive"),
        (lambda: Quantile((0.5, 0.1)), "levels must increase within"),
        (lambda: Quantile((0.5, 1.0)), "levels must increase within"),
        (lambda: Quantile(0.5), r"levels must increase within \(0, 1\), as \(0.2, 0.8\), got 0.5"),
        (lambda: Quantile((0.5,)), "tied=False"),
        (lambda: Quantile(scale=0), "scale must be a positive"),
        (lambda: Ordinal(1), "num_classes must be at least 2, got 1"),
        (lambda: Ordinal(3, thresholds=[1.0, 1.0]), "thresholds must be 2 increasing numbers"),
        (lambda: OneClass(0.0), "penalty must be a positive"),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "likelihood, Y, message",
    [
        (EpsilonInsensitive(), [1.0, np.nan, 2.0], "Y holds nan"),
        (EpsilonInsensitive(), ["a", "b", "c"], "classes need a classifier"),
        (Quantile(), [[1.0, 2.0]] * 3, r"Y must have shape \[..., 1\]"),
        (Ordinal(3), [0.0, 1.5, 2.0], "must be integers in 0..2"),
        (OneClass(), [1.0, 1.0, -1.0], "all with label 1, got -1.0"),
    ],
)
def test_bad_labels(likelihood, Y, message):
    X, Y = make_data(3)[0], np.asarray(Y)
    model = gb.models.BSVM(gpflow.kernels.SquaredExponential(), likelihood, X.copy())
    with pytest.raises(ValueError, match=message):
        CAVI().run(model, (X, Y if Y.ndim == 2 else Y[:, None]))


def test_quantiles_have_no_density():
    with pytest.raises(ValueError, match="quantiles define no density"):
        Quantile().predict_log_density(column(0), column(0) * [1, 1], column(1) * [1, 1], column(1))


def test_outliers_calibrate_one_class():
    X, _ = make_data(60)
    model = gb.models.BSVM(gpflow.kernels.SquaredExponential(), OneClass(4.0), X[:20].copy())
    CAVI().run(model, (X, np.ones((60, 1))))
    both = np.concatenate([X, X + 6]), np.repeat([[1.0], [-1.0]], 60, axis=0)
    before = model.predict_log_density(both).numpy().mean()
    gb.prediction.calibrate(model, both, held_out=True)
    assert model.predict_log_density(both).numpy().mean() > before
    P = model.predict_y(both[0])[0].numpy()[:, 0]
    assert P[:60].min() > P[60:].max()


@pytest.mark.parametrize(
    "learn",
    [
        lambda model, data: gb.inference.Streaming().run(model, data),
        lambda model, data: gb.inference.SVI(max_steps=2).run(
            model, tf.data.Dataset.from_tensor_slices(data).batch(20)
        ),
        lambda model, data: model.natgrad_step(data),
    ],
    ids=["Streaming", "SVI", "natgrad_step"],
)
def test_one_class_does_not_learn_from_outliers_among_some_rows(learn):
    X, _ = make_data(60)
    kernel = gpflow.kernels.SquaredExponential()
    model = gb.models.BSVM(kernel, OneClass(4.0), X[:20].copy(), num_data=60)
    with pytest.raises(ValueError, match="all with label 1, got 0"):
        learn(model, (X, np.repeat([[1.0], [0.0]], 30, axis=0)))
    assert not model.q_mu.numpy().any()


def test_one_class_is_undecided_at_the_margin():
    f = np.array([[1.0], [1.0], [0.0]])
    P = OneClass().probabilities(f, np.array([[0.0], [3.0], [0.0]]))
    np.testing.assert_allclose(P[:, 0], [0.5, 0.5, stats.norm.cdf(-1)])


def test_ordered_losses_one_by_one():
    theta, penalty = np.array([-1.0, 0.2, 3.0]), 1.3
    likelihood = Ordinal(4, penalty, levels=THREE, thresholds=theta)
    g = np.random.default_rng(0).normal(size=(8, 2))
    Y = np.arange(8)[:, None] % 4.0
    expected = []
    for row, y in zip(g, Y[:, 0]):
        f, loss = THREE.b + THREE.W @ row, 0.0
        for k, at in enumerate(theta, 1):
            sign = 1 if y >= k else -1
            cost = 2 * (1 - THREE.t) if sign > 0 else 2 * THREE.t
            loss += np.sum(cost * np.maximum(0, 1 - sign * (f - at))) / 3
        expected.append(-penalty * loss)
    found = likelihood.log_prob(np.zeros((8, 1)), g, Y)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
