"""The linear model: primal against dual, NumPy and other models; sparse against dense."""

import gpflow
import numpy as np
import pytest
import reference
import scipy.sparse
import tensorflow as tf
from helpers import make_data, state
from scipy.stats import norm

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, ML2, SVI, VEM
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge
from gpflow_bsvm.models import BSVM, LinearBSVM
from gpflow_bsvm.prediction import predict_marginals, predict_probabilities

TIGHT = CAVI(tol=1e-13, max_steps=2000)


def covariance(number, seed=0):
    A = np.random.default_rng(seed).normal(size=(number, number + 2))
    return A @ A.T / number


def fitted(data, *args, likelihood=None, **kwargs):
    model = LinearBSVM(data[0].shape[1], likelihood or Hinge(bound="exact"), *args, **kwargs)
    TIGHT.run(model, data)
    return model


@pytest.fixture(scope="module")
def data():
    return make_data(60, num_columns=3)


@pytest.fixture(scope="module")
def sparse(data):
    X = data[0] * (np.random.default_rng(0).random(data[0].shape) < 0.6)
    return X, scipy.sparse.csc_matrix(X), data[1]


# --- the posterior of the weights ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["augmented", "exact"])
def test_weights_are_those_of_the_papers_update(data, bound):
    """q(beta) = N(P^-1 X^T r, P^-1), P = Sigma^-1 + X^T W X, at the fixed point; in NumPy."""
    Sigma = covariance(4)
    model = fitted(data, Sigma, likelihood=Hinge(1.5, bound))
    X, y = np.column_stack([data[0], np.ones(60)]), 2 * data[1][:, 0] - 1
    mean, cov = np.zeros(4), Sigma
    for _ in range(3000):
        v = np.einsum("nd,de,ne->n", X, cov, X)
        w, r = reference.hinge_sites(X @ mean, v, y, 1.5, bound)
        P = np.linalg.inv(Sigma) + X.T @ (w[:, None] * X)
        step = 0.3 if bound == "exact" else 1.0  # a full step of the exact bound may overshoot
        P = (1 - step) * np.linalg.inv(cov) + step * P
        h = (1 - step) * np.linalg.inv(cov) @ mean + step * X.T @ r
        mean, cov = np.linalg.solve(P, h), np.linalg.inv(P)
    found = model.weights()
    # The ELBO is known to 1e-13, so that q is known to the root of it.
    np.testing.assert_allclose(found[0][:, 0], mean, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(found[1][0], cov, rtol=2e-5, atol=2e-5)


@pytest.mark.slow
def test_two_stochastic_steps_by_hand():
    """One weight, prior N(0, 1), two rows (x, y) = (1, +1), (2, -1), one a batch, rho = 1/2."""
    rows = np.array([[1.0], [2.0]]), np.array([[1.0], [0.0]])
    model = LinearBSVM(1, Hinge(bound="augmented"), bias=False, num_data=2)
    one_each = tf.data.Dataset.from_tensor_slices(rows).batch(1)
    root = np.sqrt(2)
    # alpha = (1 - 0)^2 + 1, so that P^ = 1 + 2 / sqrt(2) and h^ = 2 (1 + 1 / sqrt(2)).
    SVI(max_steps=1, learning_rate=0.5).run(model, one_each)
    mean, variance = model.weights()
    np.testing.assert_allclose([mean.item(), variance.item()], [1, 2 - root], rtol=1e-12)
    # Now alpha = (1 + 2)^2 + 4 (2 - sqrt(2)); the step goes on from P = h = 1 + 1 / sqrt(2).
    w = 1 / np.sqrt(17 - 4 * root)
    P = (1 + 1 / root) / 2 + (1 + 2 * 4 * w) / 2
    h = (1 + 1 / root) / 2 - 2 * 2 * (1 + w) / 2
    model = LinearBSVM(1, Hinge(bound="augmented"), bias=False, num_data=2)
    SVI(max_steps=2, learning_rate=0.5).run(model, one_each)
    mean, variance = model.weights()
    np.testing.assert_allclose([mean.item(), variance.item()], [h / P, 1 / P], rtol=1e-12)


@pytest.mark.slow
def test_stochastic_steps_are_the_papers_update_on_minibatches(data):
    """Eq. 14 of Wenzel et al. (2017) in natural parameters, a batch counted n / s times; NumPy."""
    Sigma, sizes, rho = covariance(4), [20, 20, 20], 0.3
    model = LinearBSVM(3, Hinge(bound="augmented"), Sigma, num_data=60)
    ends = np.cumsum(sizes)
    batches = [tuple(part[e - s : e] for part in data) for s, e in zip(sizes, ends)]
    spec = tuple(tf.TensorSpec([None, part.shape[1]], tf.float64) for part in data)
    stream = tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=spec)
    SVI(max_steps=3, learning_rate=rho).run(model, stream)
    P, h = np.linalg.inv(Sigma), np.zeros(4)
    for X, Y in batches:
        Z = (2 * Y - 1) * np.column_stack([X, np.ones(len(X))])  # rows z_i
        mean, zeta = np.linalg.solve(P, h), np.linalg.inv(P)
        alpha = (1 - Z @ mean) ** 2 + np.einsum("nd,de,ne->n", Z, zeta, Z)
        share = 60 / len(X)
        P_hat = np.linalg.inv(Sigma) + share * (Z.T / np.sqrt(alpha)) @ Z
        P = (1 - rho) * P + rho * P_hat
        h = (1 - rho) * h + rho * share * Z.T @ (1 / np.sqrt(alpha) + 1)
    mean, variance = model.weights()
    np.testing.assert_allclose(mean[:, 0], np.linalg.solve(P, h), rtol=1e-8)
    np.testing.assert_allclose(variance[0], np.linalg.inv(P), rtol=1e-8)


def test_elbo_is_that_of_all_data(data):
    model = fitted(data, 2.0)
    mean, cov = (part[..., 0] if n == 0 else part[0] for n, part in enumerate(model.weights()))
    X, y = np.column_stack([data[0], np.ones(60)]), 2 * data[1][:, 0] - 1
    v = np.einsum("nd,de,ne->n", X, cov, X)
    expectation = reference.exact_bound(X @ mean, v, y, 2.0).sum()
    trace = (np.trace(cov) + mean @ mean) / 2.0
    kl = 0.5 * (trace - 4 - np.linalg.slogdet(cov / 2.0)[1])
    np.testing.assert_allclose(model.elbo(data), expectation - kl, rtol=1e-8)


@pytest.mark.slow
def test_equals_svgp_of_a_linear_kernel_at_unit_vectors(data):
    """u = f(I) are the weights themselves."""
    X = np.column_stack([data[0], np.ones(60)])
    kernel = gpflow.kernels.Linear(variance=2.0)
    other = BSVM(kernel, Hinge(bound="exact"), np.eye(4), whiten=False)
    TIGHT.run(other, (X, data[1]))
    model = fitted(data, 2.0)
    # The jitter of Kuu, 1e-6, is what they differ by.
    np.testing.assert_allclose(model.elbo(data), other.elbo((X, data[1])), rtol=1e-5)
    np.testing.assert_allclose(model.weights()[0], other.q_mu, rtol=1e-5, atol=1e-5)
    for one, two in zip(model.predict_f(data[0]), other.predict_f(X)):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bias", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_forms_of_the_prior(data, bias):
    number = 3 + bias
    same = [0.7, np.full(number, 0.7), 0.7 * np.eye(number)]
    elbos = [fitted(data, Sigma, bias=bias).elbo(data).numpy() for Sigma in same]
    np.testing.assert_allclose(elbos, elbos[0], rtol=1e-10)
    diagonal = np.linspace(0.2, 2, number)
    one, two = (fitted(data, Sigma, bias=bias) for Sigma in (diagonal, np.diag(diagonal)))
    np.testing.assert_allclose(one.elbo(data), two.elbo(data), rtol=1e-10)
    for left, right in zip(one.weights(), two.weights()):
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-8)


def test_a_full_prior_is_a_change_of_inputs(data):
    Sigma = covariance(3)
    root = np.linalg.cholesky(Sigma)
    one = fitted(data, Sigma, bias=False)
    two = fitted((data[0] @ root, data[1]), 1.0, bias=False)
    np.testing.assert_allclose(one.elbo(data), two.elbo((data[0] @ root, data[1])), rtol=1e-10)
    np.testing.assert_allclose(one.weights()[0], root @ two.weights()[0], rtol=1e-6, atol=1e-8)


def test_the_bias_is_a_column_of_ones(data):
    X = np.column_stack([data[0], np.ones(60)])
    one, two = fitted(data, 0.5), fitted((X, data[1]), 0.5, bias=False)
    np.testing.assert_allclose(one.elbo(data), two.elbo((X, data[1])), rtol=1e-12)
    for left, right in zip(one.predict_y(data[0]), two.predict_y(X)):
        np.testing.assert_allclose(left, right, rtol=1e-8)


def test_predictions_and_intervals_are_those_of_the_weights(data):
    model = fitted(data, covariance(4))
    mean, cov = model.weights()
    X = np.column_stack([data[0], np.ones(60)])
    Fmu, Fvar = model.predict_f(data[0])
    np.testing.assert_allclose(Fmu, X @ mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(Fvar[:, 0], np.einsum("nd,de,ne->n", X, cov[0], X), rtol=1e-9)
    full = model.predict_f(data[0], full_cov=True)[1]
    np.testing.assert_allclose(full[0], X @ cov[0] @ X.T, rtol=1e-8, atol=1e-10)
    for one, two in zip(model.posterior().predict_f(data[0]), (Fmu, Fvar)):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-10)
    lower, upper = model.credible_intervals(0.9)
    expected = norm.interval(0.9, mean[:, 0], np.sqrt(np.diag(cov[0])))
    np.testing.assert_allclose([lower[:, 0], upper[:, 0]], expected, rtol=1e-10)


def test_several_classes(data):
    Y = np.digitize(data[0][:, :1], [-0.5, 0.5]).astype(float)
    model = LinearBSVM(3, CrammerSinger(3))
    assert model.num_latent_gps == 3
    history = CAVI().run(model, (data[0], Y))
    assert history.converged and model.weights()[0].shape == (4, 3)
    p = model.predict_y(data[0])[0].numpy()
    assert (p.argmax(axis=1) == Y[:, 0]).mean() > 0.9


@pytest.mark.slow
def test_the_regularisation_constant_is_learned(data):
    model = LinearBSVM(3, Hinge(bound="exact"))
    VEM(tol=1e-9, sweeps=10).run(model, data)
    best, constant = model.elbo(data).numpy(), float(model.kernel.variance.numpy())
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert fitted(data, factor * constant).elbo(data) < best


# --- sparse inputs -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm",
    [CAVI(), SVI(batch_size=10, max_steps=30), VEM(max_steps=3), ML2(batch_size=10, max_steps=20)],
    ids=["CAVI", "SVI", "VEM", "ML2"],
)
def test_sparse_rows_are_dense_rows(sparse, algorithm):
    X, matrix, Y = sparse
    models = [LinearBSVM(3, Hinge(bound="exact")) for _ in range(2)]
    histories = [algorithm.run(model, (x, Y)) for model, x in zip(models, (X, matrix))]
    np.testing.assert_array_equal(*(history.elbo for history in histories))
    for one, two in zip(*map(state, models)):
        np.testing.assert_array_equal(one, two)
    for predict in (predict_marginals, predict_probabilities):
        np.testing.assert_array_equal(*(predict(models[0], x, chunk_rows=7) for x in (X, matrix)))


@pytest.mark.slow
def test_sparse_rows_of_a_sparse_model(sparse):
    X, matrix, Y = sparse
    models = [BSVM(gpflow.kernels.Matern32(), Hinge(), X[:5].copy()) for _ in range(2)]
    histories = [gb.fit(model, (x, Y)) for model, x in zip(models, (X, matrix))]
    np.testing.assert_array_equal(*(history.elbo for history in histories))
    densities = [gb.prediction.leave_one_out_density(models[0], (x, Y)) for x in (X, matrix)]
    assert densities[0] == densities[1]


def test_predict_f_names_what_takes_sparse_rows(sparse):
    _, matrix, _ = sparse
    with pytest.raises(TypeError, match="predict_marginals"):
        LinearBSVM(matrix.shape[1], Hinge()).predict_f(matrix)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_sparse_rows_must_be_finite(sparse, bad):
    X, _, Y = sparse
    X = X.copy()
    X[4, 1] = bad
    with pytest.raises(ValueError, match="X holds NaN or infinity"):
        gb.fit(LinearBSVM(3, Hinge()), (scipy.sparse.csr_matrix(X), Y))


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "Sigma, match",
    [
        (0.0, "positive and finite"),
        (np.nan, "positive and finite"),
        ([1.0, 1.0, 1.0, -1.0], "positive and finite"),
        (np.ones(3), r"3 inputs and a bias must be a number, or have shape \[4\] or \[4, 4\]"),
        (np.ones((3, 3)), r"got \[3, 3\]"),
        (np.diag([1.0, 1.0, 1.0, -2.0]), "not positive definite: its smallest eigenvalue is -2"),
        (np.ones((4, 4)), "not positive definite"),
        (np.full((4, 4), np.nan), "must be symmetric|not positive definite"),
        (np.eye(4) + np.eye(4, k=1), "must be symmetric"),
    ],
)
def test_bad_priors(Sigma, match):
    with pytest.raises(ValueError, match=match):
        LinearBSVM(3, Hinge(), Sigma)


def test_other_bad_input(data):
    with pytest.raises(ValueError, match="num_features must be at least 1, got 0"):
        LinearBSVM(0, Hinge())
    with pytest.raises(ValueError, match="bias must be one of True, False, got 2"):
        LinearBSVM(3, Hinge(), bias=2)
    with pytest.raises(ValueError, match="X has 3 columns, the model has 5"):
        gb.fit(LinearBSVM(5, Hinge()), data)
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 1"):
        LinearBSVM(3, Hinge()).credible_intervals(1.0)
    with pytest.raises(ValueError, match="needs a model with num_latent_gps=3, got 2"):
        LinearBSVM(3, CrammerSinger(3), num_latent_gps=2)


def test_batches_of_rows(data):
    model = fitted(data)
    batches = data[0][:12].reshape(2, 2, 3, 3)
    for full_cov in (False, True):
        mean, variance = model.predict_f(batches, full_cov)
        for place in np.ndindex(2, 2):
            one = model.predict_f(batches[place], full_cov)
            np.testing.assert_allclose(mean[place], one[0], rtol=1e-12)
            np.testing.assert_allclose(variance[place], one[1], rtol=1e-9, atol=1e-15)


def test_weights_count_themselves_as_gpflow_does():
    weights = LinearBSVM(3, Hinge()).inducing_variable
    assert weights.shape == (4, 3, 1) and int(weights.num_inducing) == 4
