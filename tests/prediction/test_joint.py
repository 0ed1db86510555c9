"""Several rows together: joint draws, the error that is expected, the reject option."""

import gpflow
import numpy as np
import pytest
from helpers import make_data, make_model, randomise

import gpflow_bsvm as gb
from gpflow_bsvm import metrics
from gpflow_bsvm.likelihoods import Hinge, OneVsRest
from gpflow_bsvm.prediction import (
    draw_f,
    draw_probabilities,
    expected_error,
    latent_variance,
    margin,
    predict_probabilities,
    uncertainty,
)

X_NEW = np.random.default_rng(5).normal(size=(6, 2))


def several(kernel=None):
    """A model of three classes with some q that is not the prior."""
    model = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(3.0) if kernel is None else kernel,
        OneVsRest(3),
        make_data()[0][:6].copy(),
        num_latent_gps=3,
    )
    randomise(model)
    return model


@pytest.fixture(scope="module")
def three():
    return several()


@pytest.fixture(scope="module")
def binary():
    model = make_model(make_data(), likelihood=Hinge())
    randomise(model)
    return model


def separate(model):
    """The same model, each latent function with features of its own."""
    kernel = gpflow.kernels.SharedIndependent(gpflow.kernels.SquaredExponential(3.0), 3)
    Z = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(model.inducing_variable.Z.numpy())
    )
    other = gb.models.BSVM(kernel, OneVsRest(3), Z, num_latent_gps=3)
    other.assign_natural(model.natural())
    return other


# --- joint draws --------------------------------------------------------------------------------


def test_joint_draws_have_the_mean_and_covariance_of_q(three):
    num_samples = 2**15
    F = draw_f(three, X_NEW, num_samples=num_samples)
    mean, covariance = (part.numpy() for part in three.predict_f(X_NEW, full_cov=True))
    # Four standard errors of the mean, and of a product of two Gaussians.
    deviation = np.sqrt(np.einsum("lnn->nl", covariance))
    assert (abs(F.mean(axis=0) - mean) < 4 * deviation / np.sqrt(num_samples)).all()
    centred = F - mean
    for latent in range(3):
        sampled = centred[..., latent].T @ centred[..., latent] / num_samples
        scale = np.outer(deviation[:, latent], deviation[:, latent])
        assert (abs(sampled - covariance[latent]) / scale).max() < 4 * np.sqrt(2 / num_samples)
    across = np.einsum("sn,sm->nm", centred[..., 0], centred[..., 1]) / num_samples
    assert abs(across).max() < 5 * deviation.max() ** 2 / np.sqrt(num_samples)


def test_joint_draws_are_linear_in_what_is_drawn(three):
    """At inducing points all of f is Phi s: only the jitter is left."""
    Z = three.inducing_variable.Z.numpy()
    F = draw_f(three, Z, num_samples=500)
    again = draw_f(three, np.vstack([Z, Z]), num_samples=500)
    assert abs(again[:, :6] - again[:, 6:]).max() < 2e-2  # some standard deviations of 1e-3
    assert F.shape == (500, 6, 3)


@pytest.mark.slow
def test_features_of_its_own_give_the_same_draws(three):
    one, two = (draw_f(model, X_NEW, num_samples=4) for model in (three, separate(three)))
    np.testing.assert_allclose(one, two, atol=1e-8)


def test_probabilities_under_draws_are_those_of_the_likelihood(three):
    F = draw_f(three, X_NEW, num_samples=4, seed=3)
    P = draw_probabilities(three, X_NEW, num_samples=4, seed=3)
    for f, p in zip(F, P):
        expected = three.likelihood.conditional_mean(X_NEW, f)
        np.testing.assert_allclose(p, expected, atol=1e-12)


def test_draws_of_gpflows_multi_class_favor_the_largest_f():
    X, _ = make_data(12)
    model = make_model((X, None), likelihood=gpflow.likelihoods.MultiClass(3))
    randomise(model)
    P = draw_probabilities(model, X, num_samples=4)
    np.testing.assert_array_equal(P.argmax(-1), draw_f(model, X, num_samples=4).argmax(-1))
    assert gb.prediction.mutual_information(model, X).shape == (12,)


def test_joint_draws_where_rounding_exceeds_the_jitter():
    X, Y = make_data(60)
    kernel = gpflow.kernels.SquaredExponential(1e12, lengthscales=3.0)
    model = gb.models.BSVM(kernel, Hinge(), X[:8].copy())
    model.natgrad_step((X, Y))
    F = draw_f(model, X, num_samples=2000)[..., 0]
    mean, variance = (part.numpy()[:, 0] for part in model.predict_f(X))
    assert (abs(F.mean(axis=0) - mean) < 4 * np.sqrt(variance / 2000)).all()
    np.testing.assert_allclose(F.var(axis=0), variance, rtol=0.15)


def test_too_many_rows_for_their_covariances(binary, three, monkeypatch):
    """The more latent functions, the fewer rows."""
    monkeypatch.setattr(uncertainty, "MOST_ROWS", 6)
    assert draw_f(binary, X_NEW, num_samples=2).shape == (2, 6, 1)
    with pytest.raises(ValueError, match=r"joint draws of 6 rows .* at most 3 rows"):
        draw_f(three, X_NEW)


# --- doubt of single rows -----------------------------------------------------------------------


def test_margin_is_between_the_two_largest(binary, three):
    p = predict_probabilities(binary, X_NEW)[:, 0]
    np.testing.assert_allclose(margin(binary, X_NEW), abs(2 * p - 1), atol=1e-12)
    p = np.sort(predict_probabilities(three, X_NEW), axis=1)
    np.testing.assert_allclose(margin(three, X_NEW), p[:, 2] - p[:, 1], atol=1e-12)


def test_latent_variance_is_the_mean_over_functions(three):
    expected = three.predict_f(X_NEW)[1].numpy().mean(axis=1)
    np.testing.assert_allclose(latent_variance(three, X_NEW), expected, atol=1e-10)


# --- the error that is expected -----------------------------------------------------------------


def test_expected_error_is_that_of_the_probabilities(binary, three):
    for model in (binary, three):
        p = predict_probabilities(model, X_NEW)
        p = np.hstack([1 - p, p]) if p.shape[1] == 1 else p
        found = expected_error(model, X_NEW, num_samples=64, seed=2)
        np.testing.assert_allclose(found.mean, np.mean(1 - p.max(axis=1)), rtol=1e-12)
        P = draw_probabilities(model, X_NEW, num_samples=64, seed=2)
        wrong = [np.mean([1 - q[n, c] for n, c in enumerate(p.argmax(axis=1))]) for q in P]
        np.testing.assert_allclose(found.deviation, np.std(wrong, ddof=1), rtol=1e-12)


def test_equal_rows_do_not_average_out(binary):
    """The deviation of a row's error is that of many copies of it, not of independent ones."""
    one = expected_error(binary, X_NEW[:1], num_samples=2000)
    copies = expected_error(binary, np.repeat(X_NEW[:1], 9, axis=0), num_samples=2000)
    np.testing.assert_allclose(copies.mean, one.mean, rtol=1e-10)
    np.testing.assert_allclose(copies.deviation, one.deviation, rtol=0.1)  # other random draws
    assert copies.deviation > 2 * one.deviation / 3


# --- the reject option --------------------------------------------------------------------------


def test_accuracy_against_coverage_by_hand():
    y, p = np.array([0, 1, 0, 1]), np.array([0.125, 0.75, 0.625, 0.5])
    found = metrics.accuracy_against_coverage(y, p)  # p = 1/2 is a prediction of 0
    np.testing.assert_array_equal(found.doubt, [0.125, 0.25, 0.375, 0.5])
    np.testing.assert_array_equal(found.coverage, [0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(found.accuracy, [1, 1, 2 / 3, 1 / 2])
    np.testing.assert_allclose(found.accuracy[-1], 1 - metrics.error(y, np.c_[1 - p, p]))


def test_rows_of_equal_doubt_are_answered_together():
    y, p = np.array([0, 1, 1, 0]), np.array([0.1, 0.9, 0.2, 0.8])
    found = metrics.accuracy_against_coverage(y, p, doubt=[0.5, 0.0, 0.5, 1.0])
    np.testing.assert_array_equal(found.coverage, [0.25, 0.75, 1])
    np.testing.assert_allclose(found.accuracy, [1, 2 / 3, 1 / 2])
    np.testing.assert_array_equal(found.doubt, [0, 0.5, 1])


def test_doubt_must_be_a_finite_number_for_each_row():
    for doubt in ([0.1], [0.1, np.nan]):
        with pytest.raises(ValueError, match="doubt must be 2 finite numbers"):
            metrics.accuracy_against_coverage(np.array([0, 1]), np.array([0.1, 0.9]), doubt)
