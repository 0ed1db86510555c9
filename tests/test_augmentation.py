"""The local variables: a scale mixture, its distribution and its moments."""

import gpflow
import numpy as np
import pytest
from scipy import integrate, stats

import gpflow_bsvm as gb

PENALTIES = [0.3, 2.0, 5.0]  # 0.3 is not a float32 number


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
def test_distribution_is_the_generalised_inverse_gaussian(penalty, alpha):
    a = penalty / 2
    ours = gb.prediction.local_distribution(np.array(alpha), penalty)
    # SciPy's geninvgauss(p, b, scale): p = 1/2, b = sqrt(a^2 alpha), scale = sqrt(alpha) / a.
    theirs = stats.geninvgauss(0.5, a * np.sqrt(alpha), scale=np.sqrt(alpha) / a)
    lam = theirs.ppf([0.01, 0.2, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(ours.log_prob(lam), theirs.logpdf(lam), atol=1e-8)


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
def test_moments_by_quadrature(penalty, alpha):
    density = lambda lam: float(  # noqa: E731
        gb.prediction.local_distribution(np.array(alpha), penalty).prob(lam)
    )
    a = penalty / 2
    scale = np.sqrt(alpha) / a
    # In log(lambda), where the density is smooth and light-tailed.
    mean, inverse = (
        integrate.quad(
            lambda t, k=k: density(scale * np.exp(t)) * (scale * np.exp(t)) ** (k + 1), -12, 12,
            limit=200, epsabs=1e-12,
        )[0]
        for k in (1, -1)
    )  # fmt: skip
    expected = gb.prediction.local_moments(alpha, penalty)
    np.testing.assert_allclose(expected, (mean, inverse), rtol=1e-8)


def test_samples_have_the_moments():
    alpha = np.array([0.1, 2.0])
    draws = gb.prediction.local_distribution(alpha, 2.0).sample(200_000, seed=0).numpy()
    mean, inverse = gb.prediction.local_moments(alpha, 2.0)
    for values, expected in ((draws, mean), (1 / draws, inverse)):
        error = values.std(axis=0) / np.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - expected) < 4 * error).all()


@pytest.fixture(scope="module")
def fit():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 2))
    Y = np.sign(X[:, :1] + 0.2 * random.normal(size=(80, 1)))
    model = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(4.0),
        gb.likelihoods.Hinge(bound="augmented"),
        X[:12],
        num_data=80,
    )
    gb.fit(model, (X, Y), progress=False)
    return model, X, Y


def test_alpha_of_a_model(fit):
    model, X, Y = fit
    mean, variance = model.predict_f(X)
    np.testing.assert_allclose(
        gb.prediction.alpha(model, (X, Y)), (1 - Y * mean) ** 2 + variance, atol=1e-8
    )


def test_soft_support_vectors(fit):
    model, X, Y = fit
    alpha = gb.prediction.alpha(model, (X, Y))[:, 0]
    assert (np.diff(alpha[gb.prediction.soft_support_vectors(model, (X, Y), num=10)]) >= 0).all()
    assert set(gb.prediction.soft_support_vectors(model, (X, Y))) == set(np.flatnonzero(alpha < 1))
    # Both label encodings mean the same.
    other = gb.prediction.soft_support_vectors(model, (X, (Y + 1) / 2))
    np.testing.assert_array_equal(other, gb.prediction.soft_support_vectors(model, (X, Y)))


def test_no_local_variables():
    model = gb.models.BSVM(gpflow.kernels.SquaredExponential(), gb.likelihoods.Probit(), np.eye(2))
    with pytest.raises(ValueError, match="Probit as it is has no local variables"):
        gb.prediction.alpha(model, (np.eye(2), np.array([[0.0], [1.0]])))


def test_penalties_keep_their_precision():
    mean, inverse = gb.prediction.local_moments(2.0, 0.3)  # in float32, 0.3 is off by 1e-8
    np.testing.assert_allclose(mean, np.sqrt(2) / 0.15 + 1 / 0.15**2, rtol=1e-14)
    np.testing.assert_allclose(inverse, 0.15 / np.sqrt(2), rtol=1e-14)
    q = gb.prediction.local_distribution(np.array(2.0), 0.3).distribution
    np.testing.assert_allclose(q.loc, 0.15 / np.sqrt(2), rtol=1e-14)
