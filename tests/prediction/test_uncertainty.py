"""How sure a classifier is: closed forms against sampling, quadrature and each other."""

import gpflow
import numpy as np
import pytest
from helpers import make_data, make_model, randomise
from scipy import integrate, stats

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, OneVsRest
from gpflow_bsvm.prediction import mutual_information, predictive_entropy, variation_ratio

X_NEW = np.random.default_rng(5).normal(size=(7, 2))


def several(likelihood, seed=0):
    """A model of C classes with some q that is not the prior."""
    model = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(3.0),
        likelihood,
        make_data()[0][:6].copy(),
        num_latent_gps=likelihood.latent_dim,
    )
    randomise(model, seed)
    return model


@pytest.fixture(scope="module", params=[CrammerSinger, OneVsRest])
def four(request):
    return several(request.param(4))


@pytest.fixture(scope="module")
def binary():
    model = make_model(make_data(), likelihood=Hinge())
    randomise(model)
    return model


def test_variation_ratio_of_one_latent_function(binary):
    mean, variance = (part.numpy()[:, 0] for part in binary.predict_f(X_NEW))
    p = stats.norm.cdf(mean / np.sqrt(variance))
    np.testing.assert_allclose(variation_ratio(binary, X_NEW), np.minimum(p, 1 - p), atol=1e-10)


def test_variation_ratio_of_two_latent_functions_is_binary():
    model = several(CrammerSinger(2))
    mean, variance = (part.numpy() for part in model.predict_f(X_NEW))
    p = stats.norm.cdf((mean[:, 1] - mean[:, 0]) / np.sqrt(variance.sum(axis=1)))
    np.testing.assert_allclose(variation_ratio(model, X_NEW), np.minimum(p, 1 - p), atol=1e-9)


@pytest.mark.parametrize(
    "likelihood, mean",
    [
        (Hinge(), [0.7]),
        (gb.likelihoods.OneClass(), [1.1]),
        (gb.likelihoods.LevelHinge(), [0.7, 0.2]),
        (gb.likelihoods.Ordinal(3), [0.7, 0.2]),
        (gb.likelihoods.Ordinal(3), [-0.1, 0.2]),
    ],
)
def test_variation_ratio_is_of_the_link_s_decision(likelihood, mean):
    """p(y | f) of draws, with an offset where there is one; ordered classes by their median."""
    if "offset" in likelihood.neutral_link:
        likelihood.scale.assign(1.3)
        likelihood.offset.assign(likelihood.offset - 0.6)
    row = np.zeros((1, 1))
    q_sqrt = np.full((len(mean), 1, 1), 0.5)
    kernel = gpflow.kernels.SquaredExponential()
    model = gb.models.BSVM(kernel, likelihood, row, q_mu=np.array([mean]), q_sqrt=q_sqrt)
    num_samples = 2**14
    F = mean + 0.5 * np.random.default_rng(0).normal(size=(num_samples, len(mean)))
    p = likelihood.invlink(F).numpy()
    p = np.hstack([1 - p, p]) if p.shape[1] == 1 else p
    chosen = (np.cumsum(p, axis=1) < 0.5).sum(axis=1)
    others = 1 - np.bincount(chosen).max() / num_samples
    tolerance = 4 * np.sqrt(0.25 / num_samples)  # of standard errors
    np.testing.assert_allclose(variation_ratio(model, row), [others], atol=tolerance)
    assert others > 0.02


def test_variation_ratio_by_sampling(binary, four):
    num_samples = 2**14
    for model in (binary, four):
        mean, variance = (part.numpy() for part in model.predict_f(X_NEW))
        normals = np.random.default_rng(0).normal(size=(num_samples, *mean.shape))
        F = mean + np.sqrt(variance) * normals
        F = np.concatenate([np.zeros_like(F), F], axis=2) if F.shape[2] == 1 else F
        shares = [np.mean(F.argmax(axis=2) == c, axis=0) for c in range(F.shape[2])]
        tolerance = 4 * np.sqrt(0.25 / num_samples)  # of standard errors
        ratio = variation_ratio(model, X_NEW)
        np.testing.assert_allclose(1 - np.max(shares, axis=0), ratio, atol=tolerance)


def test_entropy_is_that_of_the_prediction(binary, four):
    p = four.predict_y(X_NEW)[0].numpy()
    np.testing.assert_allclose(
        predictive_entropy(four, X_NEW), -(p * np.log(p)).sum(axis=1), atol=1e-9
    )
    p = binary.predict_y(X_NEW)[0].numpy()[:, 0]
    expected = stats.bernoulli(p).entropy()
    np.testing.assert_allclose(predictive_entropy(binary, X_NEW), expected, atol=1e-10)


@pytest.mark.slow
def test_mutual_information_against_quadrature(binary):
    mean, variance = (part.numpy()[:, 0] for part in binary.predict_f(X_NEW))

    def information(m, s):
        p = lambda z: stats.norm.cdf(m + s * z)  # noqa: E731
        expected = lambda g: integrate.quad(  # noqa: E731
            lambda z: g(z) * stats.norm.pdf(z), -9, 9, epsabs=1e-12
        )[0]
        return stats.bernoulli(expected(p)).entropy() - expected(
            lambda z: stats.bernoulli(p(z)).entropy()
        )

    expected = [information(*pair) for pair in zip(mean, np.sqrt(variance))]
    got = mutual_information(binary, X_NEW, num_samples=2**12)
    np.testing.assert_allclose(got, expected, atol=2e-4)  # quasi-Monte Carlo: about 1/S


def test_mutual_information_of_several_classes(four):
    """Against plain Monte Carlo with the closed-form entropy of the prediction."""
    mean, variance = (part.numpy()[:1] for part in four.predict_f(X_NEW))
    draws = mean + np.sqrt(variance) * np.random.default_rng(0).normal(size=(20_000, 4))
    p = four.likelihood.conditional_mean(np.zeros((len(draws), 2)), draws).numpy()
    entropies = stats.entropy(p, axis=1)
    expected = stats.entropy(p.mean(axis=0)) - entropies.mean()
    got = mutual_information(four, X_NEW, num_samples=2**12)
    assert abs(got[0] - expected) < 4 * entropies.std() / np.sqrt(len(draws))
    assert (got > 0).all()
    assert (got < stats.entropy(np.full(4, 0.25))).all()


def test_nothing_to_learn_where_f_is_known(four):
    known = several(four.likelihood)
    known.kernel.variance.assign(1e-12)
    assert mutual_information(known, X_NEW, num_samples=16).max() < 1e-9
    # All classes are alike there, and the doubt is of the link.
    np.testing.assert_allclose(predictive_entropy(known, X_NEW), np.log(4), atol=1e-5)


def test_order_of_classes_changes_nothing(four):
    order = [2, 0, 3, 1]
    other = several(four.likelihood)
    other.q_mu.assign(four.q_mu.numpy()[:, order])
    other.q_sqrt.assign(four.q_sqrt.numpy()[order])
    for function in (variation_ratio, predictive_entropy):
        np.testing.assert_allclose(function(other, X_NEW), function(four, X_NEW), atol=1e-10)


def test_gpflows_likelihoods_too():
    model = make_model(make_data(), likelihood=gpflow.likelihoods.Bernoulli())
    randomise(model)
    p = model.predict_y(X_NEW)[0].numpy()[:, 0]
    np.testing.assert_allclose(
        predictive_entropy(model, X_NEW), stats.bernoulli(p).entropy(), atol=1e-10
    )
    assert (mutual_information(model, X_NEW) <= predictive_entropy(model, X_NEW)).all()


def test_bad_input(four, binary):
    with pytest.raises(ValueError, match="num_samples must be at least 1"):
        mutual_information(four, X_NEW, num_samples=0)
    with pytest.raises(ValueError, match="X holds nan"):
        mutual_information(four, np.full((1, 2), np.nan))
    several_labels = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(), Hinge(), X_NEW[:2].copy(), num_latent_gps=3
    )
    with pytest.raises(ValueError, match="3 binary labels"):
        predictive_entropy(several_labels, X_NEW)


@pytest.mark.parametrize(
    "likelihood", [gb.likelihoods.EpsilonInsensitive(), gpflow.likelihoods.Gaussian()]
)
@pytest.mark.parametrize(
    "measure", ["variation_ratio", "predictive_entropy", "margin", "expected_error"]
)
def test_measures_of_classes_refuse_regression(likelihood, measure):
    X, _ = make_data(20)
    model = gb.models.BSVM(gpflow.kernels.SquaredExponential(), likelihood, X[:5])
    with pytest.raises(ValueError, match="has no class probabilities"):
        getattr(gb.prediction, measure)(model, X)
