"""The hinge at every level of probability: against `Hinge`, integrals, brute force and sampling."""

import re

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import make_data
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.svm import SVC

import gpflow_bsvm as gb
from gpflow_bsvm.inference import ECM
from gpflow_bsvm.likelihoods import (
    EpsilonInsensitive,
    Hinge,
    LevelHinge,
    Levels,
    OneVsRestLevelHinge,
    Quantile,
    location_spread,
    sites,
    sites_by_autodiff,
)
from gpflow_bsvm.likelihoods.levels import log_probabilities, mean_normal_cdf


def location(levels):
    """Q = 1."""
    return location_spread(levels, 0.0)


def independent(levels):
    """Q = T."""
    t = np.asarray(levels)
    return Levels(t, np.eye(len(t)), np.zeros(len(t)))


def mixed():
    """Six levels of three latent functions."""
    t = np.linspace(0.1, 0.9, 6)
    s = logit(t)
    return Levels(t, np.stack([np.ones(6), 0.4 * s, 0.2 * s**2], axis=1), np.zeros(6))


STRUCTURES = [location_spread(5), location(4), independent((0.2, 0.6)), mixed()]


def moments(levels, rng, num_rows=9, targets=1):
    shape = (num_rows, targets * levels.num_latents)
    X = np.zeros((num_rows, 1))
    return X, 2 * rng.normal(size=shape), rng.uniform(0.05, 2, shape)


def labels(rng, num_rows=9):
    return rng.integers(0, 2, (num_rows, 1)).astype(float)


@pytest.mark.parametrize("bound", ["exact", "augmented"])
def test_the_level_one_half_alone_is_the_hinge(rng, bound):
    """t = 1/2 costs both classes 1; the two then differ by the link alone."""
    one, hinge = LevelHinge(3.0, bound, independent([0.5])), Hinge(3.0, bound)
    X, Fmu, Fvar = moments(one.levels, rng)
    Y = labels(rng)
    for of in ("variational_expectations", "log_prob"):
        arguments = (X, Fmu, Fvar, Y) if of[0] == "v" else (X, Fmu, Y)
        np.testing.assert_allclose(getattr(one, of)(*arguments), getattr(hinge, of)(*arguments))
    for mine, theirs in zip(one.sites(X, Fmu, Fvar, Y), hinge.sites(X, Fmu, Fvar, Y)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    for mine, theirs in zip(one.point_sites(Fmu, Y), hinge.point_sites(Fmu, Y)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize("levels", STRUCTURES)
def test_expectation_is_that_of_weighted_hinges(levels, rng):
    """The mean of f_k and its variance, then `Hinge`, one level at a time, by NumPy."""
    X, Fmu, Fvar = moments(levels, rng)
    Y = labels(rng)
    expected = 0
    for t, W, b in zip(levels.t, levels.W, levels.b):
        m, v = b + Fmu @ W, Fvar @ W**2
        cost = np.where(Y[:, 0] == 1, 2 * (1 - t), 2 * t) / len(levels.t)
        of_level = Hinge(1.5).variational_expectations(X, m[:, None], v[:, None], Y)
        expected = expected + cost * of_level
    found = LevelHinge(1.5, levels=levels).variational_expectations(X, Fmu, Fvar, Y)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("bound", ["exact", "augmented"])
@pytest.mark.parametrize("levels", STRUCTURES)
def test_sites_are_gradients(levels, bound, rng):
    likelihood = LevelHinge(2.0, bound, levels)
    X, Fmu, Fvar = moments(levels, rng)
    arguments = (likelihood, X, Fmu, Fvar, labels(rng))
    for closed, differentiated in zip(sites(*arguments), sites_by_autodiff(*arguments)):
        np.testing.assert_allclose(closed, differentiated, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_one_vs_rest_is_its_binary_machines(num_classes, rng):
    joint = OneVsRestLevelHinge(num_classes, 2.0)
    X, Fmu, Fvar = moments(joint.levels, rng, targets=num_classes)
    Y = rng.integers(0, num_classes, (9, 1))
    alone, total, p = LevelHinge(2.0), 0, []
    for c in range(num_classes):
        mine = (X, Fmu[:, 2 * c : 2 * c + 2], Fvar[:, 2 * c : 2 * c + 2])
        total = total + alone.variational_expectations(*mine, (c == Y) * 1.0)
        p.append(alone.predict_mean_and_var(*mine)[0])
    np.testing.assert_allclose(joint.variational_expectations(X, Fmu, Fvar, Y), total)
    p = np.hstack(p)
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(joint.predict_mean_and_var(X, Fmu, Fvar)[0], p)
    log_p = np.log(np.take_along_axis(p, Y, 1))[:, 0]
    np.testing.assert_allclose(joint.predict_log_density(X, Fmu, Fvar, Y), log_p)


def test_prediction_is_the_integral_over_levels():
    """Of location and spread: E sigma(g_0 / |1 + spread g_1|), by two-dimensional quadrature."""
    likelihood = LevelHinge(levels=location_spread(9, 0.4))
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    for mean, variance in [((1.2, 0.3), (0.5, 0.2)), ((-4.0, 0.5), (0.3, 0.1)), ((0, 0), (1, 1))]:
        g = np.add(mean, np.multiply.outer(nodes, np.sqrt(variance)))
        q = g[:, None, 0] / np.abs(1 + 0.4 * g[None, :, 1])
        expected = weights @ expit(q) @ weights
        found = likelihood.probabilities(np.array([mean], float), np.array([variance], float))
        # Knots .125 apart in logit t, .25 at -4: an error of second order.
        np.testing.assert_allclose(found[0, 0], expected, rtol=2e-3)


def test_what_is_known_is_read_off_the_levels():
    """Without variance P is the level at which f_t changes its sign, in both tails."""
    g = np.array([-9.0, -2.5, 0.0, 0.7, 12.0])
    likelihood = LevelHinge(levels=location(7))
    odds = likelihood.log_odds(g[:, None], np.zeros((5, 1)))[:, 0]
    # Linear in t between knots that are h apart in logit t: at most h^2 / 8 in logit t, where h is
    # .125 up to 2 and beyond grows as logit t, and so may be 1.07 times what it is at g.
    apart = 0.125 * np.maximum(1, np.abs(g) / 2) * 1.07
    assert (np.abs(odds - g) <= apart**2 / 8).all()
    independent_levels = LevelHinge(levels=independent((0.2, 0.4, 0.7)))
    F = np.array([[1.0, 0.5, -0.5]])
    halfway = (logit(0.4) + logit(0.7)) / 2
    found = independent_levels.log_odds(F, np.zeros((1, 3)))
    np.testing.assert_allclose(found, [[halfway]], atol=2e-3)


@pytest.mark.parametrize("levels", STRUCTURES)
def test_probabilities_are_those_of_draws_of_the_level(levels, rng):
    """P(f_t > 0) of uniform t, both tails, where every f_t is given by `at`."""
    _, Fmu, Fvar = moments(levels, rng, 4)
    t = (np.arange(200_000) + 0.5) / 200_000
    b, W, W2 = levels.at(logit(t))
    p = norm.cdf((b + Fmu @ W.T) / np.sqrt(Fvar @ W2.T)).mean(axis=1)
    yes, no = log_probabilities(levels.knots(), tf.constant(Fmu), tf.constant(Fvar))
    np.testing.assert_allclose(np.exp(yes), p, atol=1e-3)  # knots .125 apart in logit t
    np.testing.assert_allclose(np.exp(yes) + np.exp(no), 1, rtol=1e-12)


def test_probabilities_that_underflow_have_gradients():
    """Each f_t of both classes is negative: P = 0 and 0, to be divided by their sum."""
    likelihood = OneVsRestLevelHinge(2)
    F = tf.constant([[-7.5, -2.9, -6.4, -1.6]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(F)
        p = likelihood.probabilities(F, tf.zeros_like(F))
    assert np.isfinite(tape.gradient(p, F)).all()
    np.testing.assert_allclose(p, [[0.5, 0.5]], rtol=1e-12)


def test_mean_of_the_normal_cdf():
    ends = np.array([-30.0, -8.0, -1.0, -1 + 1e-6, 0.3, 5.0, 40.0])
    yes, no = mean_normal_cdf(tf.constant(ends))
    for a, b, up, down in zip(ends, ends[1:], yes, no):
        nodes, weights = np.polynomial.legendre.leggauss(400)
        z = (a + b) / 2 + (b - a) / 2 * nodes
        np.testing.assert_allclose(up, weights @ norm.cdf(z) / 2, rtol=1e-6)
        np.testing.assert_allclose(down, weights @ norm.cdf(-z) / 2, rtol=1e-6)


@pytest.mark.parametrize("p", [0.05, 0.3, 0.62, 0.93])
def test_a_level_finds_its_side(p):
    """The risk p L(+1) + (1 - p) L(-1) of an unbounded f_t is smallest at sign(p - t)."""
    likelihood = LevelHinge(levels=independent((0.1, 0.5, 0.8)))
    F = np.stack(np.meshgrid(*[np.linspace(-2, 2, 9)] * 3), axis=-1).reshape(-1, 3)
    risk = [likelihood.losses(np.full((len(F), 1), y), F).numpy()[:, 0] for y in (1.0, -1.0)]
    best = F[np.argmin(p * risk[0] + (1 - p) * risk[1])]
    np.testing.assert_array_equal(best, np.sign(p - likelihood.levels.t))


@pytest.mark.slow
def test_a_likelihood_in_plain_svgp_and_bsvm():
    """`natgrad_step` is GPflow's `NaturalGradient`, and predictions agree."""
    X, Y = make_data(30)
    kernel = gpflow.kernels.SquaredExponential()
    models = [
        cls(kernel, LevelHinge(2.0), X[:6].copy(), num_latent_gps=2)
        for cls in (gpflow.models.SVGP, gb.models.BSVM)
    ]
    gpflow.optimizers.NaturalGradient(0.5).minimize(
        models[0].training_loss_closure((X, Y), compile=False),
        [(models[0].q_mu, models[0].q_sqrt)],
    )
    models[1].natgrad_step((X, Y), 0.5)
    np.testing.assert_allclose(models[0].q_mu, models[1].q_mu, atol=1e-8)
    np.testing.assert_allclose(models[0].q_sqrt, models[1].q_sqrt, atol=1e-8)
    np.testing.assert_allclose(models[0].predict_y(X)[0], models[1].predict_y(X)[0], atol=1e-8)


@pytest.mark.slow
def test_fits_and_calibrates():
    """CAVI never lets the bound fall; weights are rows; both encodings are one."""
    X, Y = make_data(24)
    weight = 1.0 + (np.arange(24) < 9)
    repeated = np.r_[0:24, 0:9]
    fitted = []
    for data, of_rows in (((X, Y), weight), ((X[repeated], 2 * Y[repeated] - 1), None)):
        model = gb.models.BSVM(
            gpflow.kernels.SquaredExponential(), LevelHinge(), X[:8], num_latent_gps=2
        )
        history = gb.inference.CAVI(tol=1e-9).run(model, data, sample_weight=of_rows)
        assert (np.diff(history.elbo) >= 0).all()
        fitted.append(model.predict_y(X)[0].numpy())
    np.testing.assert_allclose(fitted[0], fitted[1], atol=1e-5)  # CAVI's tolerance
    before = gb.prediction.leave_one_out_density(model, data)
    link = gb.prediction.calibrate(model, data)
    assert set(link) == {"scale", "offset"}
    assert gb.prediction.leave_one_out_density(model, data) >= before


@pytest.fixture(scope="module")
def binary():
    X, Y = make_data(24)
    model = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(), LevelHinge(), X[:8].copy(), num_latent_gps=2
    )
    gb.fit(model, (X, Y))
    return model, X, Y


@pytest.mark.slow
def test_who_decides_is_the_level_one_half(binary):
    """f_t at t = 1/2 is g_0, as logit 1/2 is 0."""
    model, X, _ = binary
    mean, variance = (part.numpy()[:, 0] for part in model.predict_f(X))
    ratio = gb.prediction.variation_ratio(model, X)
    np.testing.assert_allclose(ratio, norm.cdf(-abs(mean) / np.sqrt(variance)), rtol=1e-8)
    information = gb.prediction.mutual_information(model, X)
    entropy = gb.prediction.predictive_entropy(model, X)
    assert (information >= 0).all() and (information < entropy).all()


@pytest.mark.slow
def test_the_classifier_of_levels():
    """Columns, decisions and probabilities are one; two classes and three."""
    X, Y = make_data(24)
    for y in (Y[:, 0], np.digitize(X[:, 0], [-0.5, 0.5])):
        classifier = gb.BSVMClassifier(loss="levels", penalty=2.0, learn_kernel=False).fit(X, y)
        p = classifier.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_array_equal(classifier.predict(X), p.argmax(axis=1))
        direct = classifier.model_.predict_y(classifier.scaler_.transform(X))[0]
        np.testing.assert_allclose(p[:, -direct.shape[1] :], direct, atol=1e-10)
        assert classifier.loss_ == "levels" and classifier.penalty_ == 2.0
        scores = classifier.decision_function(X)
        if scores.ndim == 1:
            np.testing.assert_allclose(norm.cdf(scores), p[:, 1], rtol=1e-10)


def test_levels_that_are_none():
    for levels in ([0.5, 0.5], [0.0, 0.5], [0.2, 1.0], [0.7, 0.2], [], [[0.1, 0.2]]):
        with pytest.raises(ValueError, match="levels must increase within"):
            Levels(levels, np.eye(2), np.zeros(2))
    with pytest.raises(ValueError, match="at least 2"):
        location_spread([0.5])
    with pytest.raises(ValueError, match=r"W of shape \[2, Q\].*got \(3, 1\)"):
        Levels(np.array([0.2, 0.7]), np.ones((3, 1)), np.zeros(2))
    with pytest.raises(ValueError, match="of rank Q = 2"):
        Levels(np.array([0.2, 0.7]), np.ones((2, 2)), np.zeros(2))
    with pytest.raises(ValueError, match="W and b must be finite"):
        Levels(np.array([0.2, 0.7]), np.eye(2), np.array([np.nan, 0.0]))
    with pytest.raises(ValueError, match="must be Levels, such as"):
        LevelHinge(levels=9)
    with pytest.raises(ValueError, match="LevelHinge has no normalizer"):
        LevelHinge(normalizer=True)


def test_labels_and_latents_that_do_not_fit():
    X, Y = make_data(20)
    kernel = gpflow.kernels.SquaredExponential()
    with pytest.raises(ValueError, match="needs a model with num_latent_gps=2, got 1"):
        gb.models.BSVM(kernel, LevelHinge(), X[:4], num_latent_gps=1)
    with pytest.raises(ValueError, match="num_latent_gps=2, got 4"):
        LevelHinge().variational_expectations(X, np.zeros((20, 4)), np.ones((20, 4)), Y)
    model = gb.models.BSVM(kernel, LevelHinge(), X[:4], num_latent_gps=2)
    with pytest.raises(ValueError, match="binary labels must be in"):
        gb.fit(model, (X, 3 * Y))
    with pytest.raises(ValueError, match="a single column"):
        gb.fit(model, (X, np.hstack([Y, Y])))
    with pytest.raises(ValueError, match="one class only"):
        gb.fit(model, (X, np.ones_like(Y)))


@pytest.mark.slow
def test_the_mode_is_the_svm_with_these_costs():
    """ECM at one level other than 1/2 is scikit-learn's `SVC` with class weights, but its bias."""
    X, Y = make_data(16)
    t = 0.3
    likelihood = LevelHinge(2.0, "augmented", independent([t]))
    kernel = gpflow.kernels.SquaredExponential() + gpflow.kernels.Constant(1e4)
    model = gb.models.BSVM(kernel, likelihood, X.copy())
    ECM(tol=1e-11).run(model, (X, Y), progress=False)
    svc = SVC(C=2.0, kernel="precomputed", class_weight={1: 2 * (1 - t), 0: 2 * t}, tol=1e-8)
    gram = gpflow.kernels.SquaredExponential()(X).numpy()
    expected = svc.fit(gram, Y[:, 0]).decision_function(gram)
    # As in test_ecm: a bias of variance 1e4 costs b^2 / 2e4, jitter is noise in one of the two.
    np.testing.assert_allclose(model.predict_f(X)[0][:, 0], expected, atol=2e-3)


@pytest.mark.parametrize(
    "levels",
    [["a"], ["0.5"], [0.5 + 0j], [10**400], [], None, [np.nan], [0, 0.5], [0.5, 1], [0.5] * 2],
)
def test_levels_that_are_none_are_shown(levels):
    likelihood = EpsilonInsensitive()
    f = np.zeros((1, 1))
    text = f"levels must increase within (0, 1), as (0.2, 0.8), got {levels!r}"
    for call in (
        lambda: likelihood.predict_quantiles(f, f, levels),
        lambda: Quantile(levels),
        lambda: Levels(levels, np.ones((1, 1)), np.zeros(1)),
    ):
        with pytest.raises(ValueError, match="^" + re.escape(text)):
            call()
