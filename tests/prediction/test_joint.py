"""Several rows together: joint draws, batch BALD, the error that is expected, the reject option."""

import itertools

import gpflow
import numpy as np
import pytest
from helpers import make_data, make_model, randomise

import gpflow_bsvm as gb
from gpflow_bsvm import metrics, plotting
from gpflow_bsvm.active import batch_bald, batches, joint_mutual_information
from gpflow_bsvm.active.batches import greedy_batch
from gpflow_bsvm.likelihoods import Hinge, OneVsRest
from gpflow_bsvm.prediction import (
    draw_f,
    draw_probabilities,
    expected_error,
    joint,
    latent_variance,
    margin,
    mutual_information,
    predict_probabilities,
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


def some_probabilities(S=5, N=4, C=3, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(C, 0.4), size=(S, N))


def entropy(p):
    return -np.sum(p * np.log(p))


def enumerated(P):
    """I(y_1..y_B; f) from the table of all C^B combinations of labels."""
    S, B, C = P.shape
    table = [
        np.mean([np.prod([P[s, b, c] for b, c in enumerate(labels)]) for s in range(S)])
        for labels in itertools.product(range(C), repeat=B)
    ]
    return entropy(np.array(table)) - np.mean([sum(entropy(p) for p in draw) for draw in P])


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


def test_too_many_rows_for_their_covariance(three, monkeypatch):
    monkeypatch.setattr(joint, "MOST_ROWS", 5)
    with pytest.raises(ValueError, match=r"joint draws of 6 rows .* at most 5 rows"):
        draw_f(three, X_NEW)


# --- batch BALD ---------------------------------------------------------------------------------


@pytest.mark.parametrize("num_rows", [1, 2, 4])
def test_joint_mutual_information_is_that_of_the_table(num_rows):
    P = some_probabilities(N=num_rows)
    np.testing.assert_allclose(joint_mutual_information(P), enumerated(P), rtol=1e-12)


def test_a_batch_is_found_as_by_enumeration():
    P = some_probabilities(S=6, N=5)
    chosen = []
    for _ in range(3):
        left = [n for n in range(5) if n not in chosen]
        gains = [enumerated(P[:, [*chosen, n]]) for n in left]
        chosen.append(left[int(np.argmax(gains))])
    index, information = greedy_batch(P, 3)
    assert index.tolist() == chosen
    expected = [enumerated(P[:, chosen[: b + 1]]) for b in range(3)]
    np.testing.assert_allclose(information, expected, rtol=1e-12)


def test_a_row_twice_tells_less_than_two():
    """The second of two equal sure rows tells nothing: batch BALD looks elsewhere."""
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])  # [S, C]
    other = np.array([[0.6, 0.4], [0.4, 0.6]])
    P = np.stack([sure, sure, other], axis=1)
    greedy = greedy_batch(P, 2)
    np.testing.assert_allclose(greedy.information, np.log(2), rtol=1e-12)


def test_many_labels_are_sampled(monkeypatch):
    """Eight rows have 6561 combinations; sampled ones estimate the last terms of the chain."""
    P = some_probabilities(S=5, N=8, seed=1)
    sampled = joint_mutual_information(P)
    monkeypatch.setattr(batches, "MOST_LABELS", 10**5)
    exact = joint_mutual_information(P)
    np.testing.assert_allclose(exact, enumerated(P), rtol=1e-10)
    np.testing.assert_allclose(sampled, exact, rtol=1e-2)  # 1024 stratified draws


@pytest.mark.slow
@pytest.mark.parametrize("name", ["binary", "three"])
def test_a_batch_of_one_is_mutual_information(name, request):
    model = request.getfixturevalue(name)
    P = draw_probabilities(model, X_NEW, num_samples=64)
    each = [joint_mutual_information(P[:, [n]]) for n in range(len(X_NEW))]
    found = batch_bald(model, X_NEW, 1, num_samples=64)
    assert found.index.tolist() == [int(np.argmax(each))]
    np.testing.assert_allclose(found.information, max(each), rtol=1e-12)
    # Random draws against quasi-random ones: four standard errors of some .3 nats.
    many = draw_probabilities(model, X_NEW, num_samples=4096)
    each = [joint_mutual_information(many[:, [n]]) for n in range(len(X_NEW))]
    expected = mutual_information(model, X_NEW, num_samples=4096)
    np.testing.assert_allclose(each, expected, atol=4 * 0.3 / 64)


def test_few_candidates_are_those_of_most_information(three):
    X = np.random.default_rng(1).normal(size=(20, 2))
    each = mutual_information(three, X, num_samples=batches.SCREENING)
    found = batch_bald(three, X, 3, num_samples=32, num_candidates=3)
    assert set(found.index) == set(np.argsort(-each)[:3])


def test_a_batch_larger_than_the_rows(three):
    with pytest.raises(ValueError, match="batch_size is 7, and there are 6 rows"):
        batch_bald(three, X_NEW, 7)


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


def test_the_picture_shows_what_the_metric_says():
    y, p = np.array([0, 1, 1, 0]), np.array([0.1, 0.9, 0.2, 0.7])
    _, (ax,) = plotting.figure(1, 1)
    plotting.accuracy_against_coverage(ax, y, p, label="ours")
    found = metrics.accuracy_against_coverage(y, p)
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), np.c_[found.coverage, found.accuracy])
    assert ax.lines[0].get_label() == "ours"
