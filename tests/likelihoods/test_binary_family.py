"""Binary likelihoods beside the hinge: formulas against integrals, sites against gradients."""

import itertools

import gpflow
import numpy as np
import pytest
import reference
import tensorflow as tf
from helpers import expectations, grid, make_data, make_model
from scipy.special import expit, log_expit
from scipy.stats import norm

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import Logistic, sites, sites_by_autodiff
from gpflow_bsvm.papers.gold2003 import SquaredHinge
from gpflow_bsvm.papers.seeger2000 import NormalizedHinge

PENALTIES = (0.3, 1.0, 2.0, 7.5)


def squared_log(y, f, penalty):
    return -penalty * np.maximum(0, 1 - y * f) ** 2


def normalized_log(y, f, penalty):
    mine, other = (reference.hinge_log(sign * y, f, penalty) for sign in (1, -1))
    return mine - np.logaddexp(mine, other)


def split_expectation(function, mu, v, cuts):
    """E function(f), f ~ N(mu, v), by Gauss-Legendre between its kinks."""
    s = np.sqrt(v)
    ends = np.unique(np.clip([mu - 12 * s, *cuts, mu + 12 * s], mu - 12 * s, mu + 12 * s))
    nodes, weights = reference.legendre(200)
    total = 0.0
    for left, right in itertools.pairwise(ends):
        f = (right - left) / 2 * nodes + (right + left) / 2
        total += (right - left) / 2 * np.sum(weights * norm.pdf(f, mu, s) * function(f))
    return total


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(
    "make, log_prob", [(SquaredHinge, squared_log), (NormalizedHinge, normalized_log)]
)
def test_expectation_is_the_integral(make, log_prob, penalty):
    mu, v, y = grid()
    kept = v[:, 0] <= 25  # 200 nodes on 1000 wide intervals would not do for the reference
    mu, v, y = mu[kept], v[kept], y[kept]
    expected = [
        split_expectation(lambda f, label=label: log_prob(label, f, penalty), m, s2, (-1, 0, 1))
        for m, s2, label in np.hstack([mu, v, y])
    ]
    found = expectations(make(penalty), mu, v, y)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    f = np.linspace(-4, 4, 33)[:, None]
    for label in (-1.0, 1.0):
        log_p = make(penalty).log_prob(None, f, np.full_like(f, label))
        np.testing.assert_allclose(log_p, log_prob(label, f, penalty)[:, 0], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("variance", [1e4, 1e8])
@pytest.mark.parametrize("penalty", [*PENALTIES, 100.0])
def test_normalized_hinge_of_wide_marginals(variance, penalty):
    """The sum over labels is then a narrow peak: its area times a constant density."""
    s = np.sqrt(variance)
    found = expectations(NormalizedHinge(penalty), [[0.0]], [[variance]], [[1.0]]).item()
    both = lambda f: np.logaddexp(*(reference.hinge_log(y, f, penalty) for y in (-1, 1)))  # noqa: E731
    expected = split_expectation(both, 0.0, variance, (-150, -20, -1, 0, 1, 20, 150))
    hinge = reference.exact_bound(0.0, variance, 1.0, penalty)
    # A difference of numbers of the size of s.
    np.testing.assert_allclose(hinge - found, expected, rtol=1e-9, atol=1e-12 * s)


def test_labels_of_the_normalized_hinge_share_everything():
    f, _, y = grid()
    p = [np.exp(NormalizedHinge(3.0).log_prob(None, f, sign * y)) for sign in (1, -1)]
    np.testing.assert_allclose(p[0] + p[1], 1, rtol=1e-13)
    inside = np.linspace(-1, 1, 9)[:, None]
    log_p = NormalizedHinge(3.0).log_prob(None, inside, np.ones_like(inside))
    np.testing.assert_allclose(log_p, log_expit(6 * inside[:, 0]), rtol=1e-12)


def test_polya_gamma_bound():
    """Below the integral, equal where nothing is uncertain, and the best of its local variable."""
    mu, v, y = grid()
    kept = v[:, 0] <= 25
    mu, v, y = mu[kept], v[kept], y[kept]
    found = expectations(Logistic(), mu, v, y)
    exact = [
        reference.normal_expectation(lambda f, label=label: log_expit(label * f), m, s2)
        for m, s2, label in np.hstack([mu, v, y])
    ]
    assert (found <= np.array(exact) + 1e-9 * np.abs(exact)).all()
    certain = v[:, 0] == 1e-12
    np.testing.assert_allclose(found[certain], log_expit(y * mu)[certain, 0], rtol=1e-9, atol=1e-12)
    for c in (0.1, 1.0, 5.0):  # of any other c the bound of Jaakkola and Jordan is lower
        other = log_expit(c) + (y * mu - c) / 2 - np.tanh(c / 2) / (4 * c) * (mu**2 + v - c**2)
        assert (other[:, 0] <= found + 1e-9 * np.abs(found)).all()


def test_prediction_of_the_logistic_is_near_the_integral():
    mu, v, _ = grid()
    kept = v[:, 0] <= 25
    p, _ = Logistic().predict_mean_and_var(None, mu[kept], v[kept])
    expected = [reference.normal_expectation(expit, *row) for row in np.hstack([mu, v])[kept]]
    np.testing.assert_allclose(p[:, 0], expected, atol=0.0096)


@pytest.mark.parametrize("likelihood", [SquaredHinge(0.7), Logistic()], ids=["squared", "logistic"])
def test_closed_sites_are_those_of_autodiff(likelihood):
    mu, v, y = grid()
    moderate = (v[:, 0] > 1e-6) & (np.abs(mu[:, 0]) < 10)
    mu, v, y = mu[moderate], v[moderate], y[moderate]
    closed = sites(likelihood, np.zeros_like(mu), mu, v, y)
    automatic = sites_by_autodiff(likelihood, np.zeros_like(mu), mu, v, y)
    for one, other in zip(closed, automatic):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    assert (closed[0].numpy() >= 0).all()


@pytest.mark.parametrize("penalty", PENALTIES)
def test_normaliser_of_the_squared_hinge(penalty):
    f = np.linspace(-3, 3, 60_001)
    most = max(np.exp(squared_log(1, f, penalty)) + np.exp(squared_log(-1, f, penalty)))
    found = SquaredHinge(penalty, normalizer=True).log_kappa().numpy()
    np.testing.assert_allclose(found, -np.log(most), atol=1e-6)
    assert SquaredHinge(penalty).log_kappa() == 0


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize(
    "likelihood",
    [SquaredHinge(), NormalizedHinge(), Logistic()],
    ids=["squared", "normalized", "logistic"],
)
def test_the_engine_takes_them_as_they_are(likelihood):
    """CAVI ascends and ends where the gradient is 0, and a kernel can be learned."""
    data = make_data(40)
    model = make_model(data, likelihood=likelihood, num_inducing=5)
    history = gb.inference.CAVI(tol=1e-12, max_steps=500).run(model, data)
    assert (np.diff(history.elbo) >= -1e-9).all()
    np.testing.assert_allclose(model.elbo(data), history.elbo[-1], rtol=1e-10)
    with tf.GradientTape() as tape:
        elbo = model.elbo(data)
    for slope in tape.gradient(elbo, (model.q_mu.unconstrained_variable,)):
        np.testing.assert_allclose(slope, 0, atol=1e-4)  # the root of what the ELBO is known to
    gpflow.set_trainable(model.inducing_variable, False)
    learned = gb.inference.VEM(max_steps=3).run(model, data)
    assert learned.elbo[-1] > history.elbo[-1]


@pytest.mark.parametrize("make", [SquaredHinge, NormalizedHinge])
def test_bad_options(make):
    with pytest.raises(ValueError, match="penalty must be a positive, finite number"):
        make(0.0)
