"""ECM: its fixed point is the support vector machine."""

import gpflow
import numpy as np
import pytest
from helpers import make_data, make_model
from scipy import optimize
from sklearn.svm import SVC, LinearSVC

from gpflow_bsvm.engine.contracts import features_of
from gpflow_bsvm.inference import CAVI, ECM
from gpflow_bsvm.likelihoods import (
    CrammerSinger,
    Hinge,
    LevelHinge,
    Logistic,
    OneVsRest,
    location_spread,
)
from gpflow_bsvm.models import BatchBSVM, LinearBSVM

TIGHT = ECM(max_steps=20_000, tol=0.0)


@pytest.fixture(scope="module")
def data():
    return make_data(60)


@pytest.mark.parametrize("penalty, variance", [(1.0, 1.0), (0.3, 4.0), (5.0, 0.5)])
def test_linear_model_is_linear_svc(data, penalty, variance):
    X, Y = data
    model = LinearBSVM(2, Hinge(penalty, "augmented"), variance, bias=False)
    history = TIGHT.run(model, data)
    assert (np.diff(history.elbo) >= -1e-9).all()
    svc = LinearSVC(
        loss="hinge", C=penalty * variance, fit_intercept=False, tol=1e-12, max_iter=10_000_000
    ).fit(X, Y[:, 0])
    f = model.predict_f(X)[0].numpy()[:, 0]
    np.testing.assert_allclose(f, svc.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(model.weights()[0][:, 0], svc.coef_[0], atol=1e-5)


def test_single_precision_finds_the_mode_too(data):
    double = make_model(data)
    TIGHT.run(double, data)
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        data32 = tuple(array.astype(np.float32) for array in data)
        single = make_model(data32)
        ECM().run(single, data32)
        f = single.predict_f(data32[0])[0]
    # Of the margin 1. Flat directions are found to the root of the rounding.
    np.testing.assert_allclose(f, double.predict_f(data[0])[0], atol=0.02)


def test_log_posterior_that_is_not_finite_is_an_error(data):
    model = make_model(data, mean_function=gpflow.functions.Constant(1e308))
    with pytest.raises(ValueError, match="not finite at the start"):
        ECM().run(model, data)


@pytest.mark.slow
def test_bias_of_large_prior_variance_costs_nothing(data):
    X, Y = data
    model = LinearBSVM(2, Hinge(1.0, "augmented"), [1.0, 1.0, 1e6])
    TIGHT.run(model, data)
    svc = SVC(kernel="linear", C=1.0, tol=1e-10).fit(X, Y[:, 0])
    f = model.predict_f(X)[0].numpy()[:, 0]
    np.testing.assert_allclose(f, svc.decision_function(X), atol=1e-5)


@pytest.mark.slow
def test_batch_model_is_svc_on_its_gram_matrix(data):
    X, Y = data
    kernel = gpflow.kernels.SquaredExponential(2.0, lengthscales=0.7)
    free = kernel + gpflow.kernels.Constant(1e5)
    model = BatchBSVM(data, free, Hinge(1.5, "augmented"))
    TIGHT.run(model)
    gram = kernel(X).numpy() + model.jitter * np.eye(60)
    svc = SVC(kernel="precomputed", C=1.5, tol=1e-10).fit(gram, Y[:, 0])
    f = model.predict_f(X)[0].numpy()[:, 0]
    # The bias costs b^2 / 2e5; the jitter counts as noise in one and as kernel in the other.
    np.testing.assert_allclose(f, svc.decision_function(gram), atol=1e-4)


def test_sparse_model_is_the_svm_of_its_features(data):
    X, Y = data
    model = make_model(data, num_inducing=8)
    TIGHT.run(model, data, sample_weight=np.full(60, 0.5))
    features = features_of(model, X)[0][0].numpy()
    svc = LinearSVC(loss="hinge", C=0.5 * 2.0, fit_intercept=False, tol=1e-10, max_iter=10_000_000)
    f = features @ svc.fit(features, Y[:, 0]).coef_[0]
    np.testing.assert_allclose(model.predict_f(X)[0].numpy()[:, 0], f, atol=1e-5)


def test_logistic_regression(data):
    X, y = data[0], 2 * data[1][:, 0] - 1
    model = LinearBSVM(2, Logistic(), 2.0, bias=False)
    TIGHT.run(model, data)
    best = optimize.minimize(
        lambda beta: np.logaddexp(0, -y * (X @ beta)).sum() + beta @ beta / 4,
        np.zeros(2),
        options={"gtol": 1e-10},
    )
    np.testing.assert_allclose(model.weights()[0][:, 0], best.x, atol=1e-6)


@pytest.mark.slow
def test_one_vs_rest_is_one_machine_a_class(data):
    X = data[0]
    Y = np.digitize(X[:, :1], [-0.5, 0.5]).astype(float)
    model = LinearBSVM(2, OneVsRest(3, bound="augmented"))
    TIGHT.run(model, (X, Y))
    for c in range(3):
        one = LinearBSVM(2, Hinge(2.0, "augmented"))
        TIGHT.run(one, (X, (c == Y).astype(float)))
        np.testing.assert_allclose(model.weights()[0][:, c], one.weights()[0][:, 0], atol=1e-5)


@pytest.mark.slow
def test_it_is_where_cavi_goes_as_variance_vanishes(data):
    """A likelihood of weight 1000 leaves q no variance to speak of."""
    weight = np.full(60, 1000.0)
    one, two = (LinearBSVM(2, Hinge(bound="augmented"), 1e-3) for _ in range(2))
    CAVI(tol=1e-12, max_steps=5000).run(one, data, sample_weight=weight)
    TIGHT.run(two, data, sample_weight=weight)
    np.testing.assert_allclose(one.weights()[0], two.weights()[0], atol=2e-3)


def test_whichever_bound_is_trained_the_mode_is_the_same(data):
    one, two = (LinearBSVM(2, Hinge(1.5, bound)) for bound in ("exact", "augmented"))
    for model in (one, two):
        ECM().run(model, data)
    np.testing.assert_array_equal(one.q_mu, two.q_mu)


def test_losses_of_several_latent_functions_are_one_quadratic_program(data):
    """Slack variables xi_k >= b_k for all hinges, by SLSQP."""
    X, Y = data[0][:10], data[1][:10]
    likelihood = LevelHinge(2.0, levels=location_spread(2))
    mean = gpflow.functions.Constant([0.3, -0.2])
    model = LinearBSVM(2, likelihood, bias=False, mean_function=mean)
    history = ECM(max_steps=5000, tol=1e-14).run(model, (X, Y))
    assert history.converged and (np.diff(history.elbo) >= -1e-9).all()
    levels, y = likelihood.levels, 2 * Y[:, :1] - 1
    costs = np.where(y > 0, 2 * (1 - levels.t), 2 * levels.t) / len(levels.t)

    def margins(v):
        F = X @ v[:4].reshape(2, 2).T + [0.3, -0.2]
        return (1 - y * (levels.b + F @ levels.W.T)).ravel()

    best = optimize.minimize(
        lambda v: v[:4] @ v[:4] / 2 + 2 * costs.ravel() @ v[4:],
        np.r_[np.zeros(4), 2 * np.ones(costs.size)],
        method="SLSQP",
        bounds=[(None, None)] * 4 + [(0, None)] * costs.size,
        constraints={"type": "ineq", "fun": lambda v: v[4:] - margins(v)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(history.elbo[-1], -best.fun, rtol=1e-6)  # where ECM stops
    np.testing.assert_allclose(model.weights()[0].T.ravel(), best.x[:4], atol=1e-4)


def test_q_is_a_point_and_that_is_no_fault(data, recwarn):
    model = make_model(data)
    history = ECM().run(model, data)
    assert history.converged
    ECM().run(LinearBSVM(2, Hinge()), data)  # f has no residual variance
    assert not [str(one.message) for one in recwarn]
    np.testing.assert_allclose(model.q_sqrt[0], 1e-6 * np.eye(8), rtol=1e-6, atol=1e-18)


@pytest.mark.parametrize("likelihood", [CrammerSinger(2), gpflow.likelihoods.Bernoulli()])
def test_likelihoods_without_sites_at_a_point(data, likelihood):
    model = make_model(data, likelihood=likelihood, num_latent_gps=likelihood.latent_dim or 1)
    with pytest.raises(
        ValueError, match=r"no sites at a point.*use Hinge, OneVsRest or Eps.*, or CAVI"
    ):
        ECM().run(model, data)


def test_bad_options():
    with pytest.raises(ValueError, match="max_steps must be at least 1, got 0"):
        ECM(max_steps=0)
    with pytest.raises(ValueError, match="tol must be at least 0, got -1"):
        ECM(tol=-1)
