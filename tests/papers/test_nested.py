"""Seeger's nested loop: q at its optimum, the kernel by gradients there."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from factor_models import LIKELIHOODS, N, as_vgp, make, noisy, settle
from helpers import ard, log_normal, make_data, minimise
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessClassifier, kernels

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.models import BatchBSVM
from gpflow_bsvm.papers.seeger2000 import FactorVGP, NestedLoop, NormalizedHinge


@pytest.fixture(scope="module")
def data():
    return make_data(N)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.drill] * ("hinge" in name)) for name in LIKELIHOODS],
)
def test_rank_n_is_the_best_gaussian(data, name):
    model = make(data, N, LIKELIHOODS[name](), fixed=True)
    elbo, other = settle(model), as_vgp(model)
    gpflow.set_trainable((other.kernel, other.likelihood), False)
    what = other.training_loss, other.trainable_variables
    minimise(*what, maxiter=1000, ftol=1e-14)
    # From there GPflow's full covariance gains nothing that L-BFGS would have seen.
    np.testing.assert_allclose(elbo, other.elbo(), rtol=1e-7)
    full = BatchBSVM(data, ard(), LIKELIHOODS[name]())
    CAVI(tol=1e-14, max_steps=2000).run(full, progress=False)
    # The jitter is in the Gram matrix in one, and beside it in the other.
    np.testing.assert_allclose(elbo, full.elbo(), rtol=1e-4)
    Xnew = make_data(5, seed=1)[0]
    for one, two in zip(model.predict_f(Xnew), full.predict_f(Xnew)):
        np.testing.assert_allclose(one, two, rtol=5e-3, atol=1e-3)


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 3])
def test_conditions_of_optimality(data, rank):
    """
    K^-1 mu = dE/dmu, (K^-1 + W - Sigma^-1) C = 0, and [Sigma^-1]_nn = [K^-1]_nn + w_n wherever
    V_n is above its least; where it is not, a smaller one would be better still.
    """
    model = make(data, rank, NormalizedHinge(1.5), fixed=True)
    settle(model)
    X, Y = model.data
    q, root = model.moments(), model.root()
    mean, variance = tf.constant(q.mean), tf.constant(q.variance())
    with tf.GradientTape() as tape:
        tape.watch((mean, variance))
        expected = model.likelihood.variational_expectations(X, mean, variance, Y)
    by_mean, by_variance = (part.numpy() for part in tape.gradient(expected, (mean, variance)))
    C, V, w = q.factors.numpy(), q.rest.numpy()[:, 0], -2 * by_variance[:, 0]
    inverse = np.linalg.inv(np.diag(V) + C @ C.T)
    prior = np.linalg.inv(root.L @ root.L.numpy().T)
    # The optimiser sees the bound only: q is known to the root of its rounding.
    np.testing.assert_allclose(model.q_mu, root.L.numpy().T @ by_mean, atol=3e-5)
    white = root.L.numpy().T @ (prior + np.diag(w) - inverse) @ C
    np.testing.assert_allclose(white, np.zeros_like(white), atol=3e-5)
    least = model.q_rest.numpy()[:, 0] < 1e-4
    gain = 1 - np.diag(inverse) / (np.diag(prior) + w)
    np.testing.assert_allclose(gain[~least], 0, atol=3e-5)
    assert (gain[least] > 0.01).all() and least.any() == (rank > 0)
    if rank == 0:
        np.testing.assert_allclose(V, 1 / (np.diag(prior) + w), rtol=3e-5)


class Expansion(gpflow.likelihoods.ScalarLikelihood):
    """The logistic log-likelihood to second order about f^, eq. 7 of Seeger (2000)."""

    def __init__(self, at):
        super().__init__()
        self._at = at

    def _terms(self, F, Y):
        y, at = 2 * Y - 1, self._at
        p = tf.sigmoid(y * at)
        return tf.math.log(p) + y * (1 - p) * (F - at), -p * (1 - p) / 2

    def _scalar_log_prob(self, X, F, Y):
        first, second = self._terms(F, Y)
        return first + second * tf.square(F - self._at)

    def _variational_expectations(self, X, Fmu, Fvar, Y):
        first, second = self._terms(Fmu, Y)
        return tf.reduce_sum(first + second * (tf.square(Fmu - self._at) + Fvar), axis=-1)


@pytest.mark.slow
def test_with_the_expansion_of_eq_7_it_is_laplaces_approximation(data):
    """Of Williams and Barber: same Gaussian, and -F is the evidence that they maximise."""
    X, Y = data
    laplace = GaussianProcessClassifier(
        kernels.ConstantKernel(2.0) * kernels.Matern([0.8, 1.5], nu=1.5), optimizer=None
    ).fit(X, Y[:, 0])
    base = laplace.base_estimator_
    evidence, K = base.log_marginal_likelihood(base.kernel_.theta), base.kernel_(X)
    mode = K @ base._posterior_mode(K, return_temporaries=True)[1][-1]
    kernel = gpflow.kernels.Matern32(2.0, lengthscales=[0.8, 1.5])
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-12)):
        model = make(data, N, Expansion(mode[:, None]), kernel, fixed=True)
        np.testing.assert_allclose(settle(model), evidence, rtol=1e-6)
        mean, variance = (part.numpy()[:, 0] for part in model.predict_f(X))
    np.testing.assert_allclose(mean, mode, atol=1e-3)
    W = 1 / (1 + np.exp(-mode)) / (1 + np.exp(mode))
    Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(W))
    np.testing.assert_allclose(variance, np.diag(Sigma), rtol=1e-2)


@pytest.mark.slow
def test_of_a_gaussian_likelihood_rank_n_is_exact(data):
    X, Y = data
    likelihood = gpflow.likelihoods.Gaussian(0.2)
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-10)):
        elbo = settle(make(data, N, likelihood, fixed=True))
        K = ard()(X).numpy() + 0.2 * np.eye(N)
    np.testing.assert_allclose(elbo, multivariate_normal.logpdf(Y[:, 0], cov=K), rtol=1e-7)


@pytest.mark.drill
@pytest.mark.slow
def test_gradient_at_fixed_q_is_that_of_the_optimum(data):
    """The envelope theorem, by finite differences of inner optima."""
    model = make(data, 2, NormalizedHinge(1.5), noisy())
    gpflow.set_trainable(model.likelihood, False)
    values = [p.unconstrained_variable for p in model.kernel.trainable_parameters]

    def best():
        gpflow.set_trainable(model.kernel, False)
        elbo = settle(model)
        gpflow.set_trainable(model.kernel, True)
        return elbo

    best()
    with tf.GradientTape() as tape:
        elbo = model.elbo()
    for variable, slope in zip(values, tape.gradient(elbo, values)):
        here = variable.numpy()
        ends = [(variable.assign(here + h), best())[1] for h in (1e-3, -1e-3)]
        variable.assign(here)
        # Along a line through all components; a difference of second order.
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-3, np.sum(slope), rtol=1e-3, atol=1e-5)


@pytest.mark.slow
@pytest.mark.drill
def test_a_stiff_kernel_takes_few_iterations(data):
    """Without the scale 30 iterations are two nats short."""
    elbos = []
    for most in (30, 2000):
        smooth = gpflow.kernels.SquaredExponential(1e4, lengthscales=3.0)
        kernel = smooth + gpflow.kernels.White(0.1)
        model = make(data, 3, NormalizedHinge(1.0), kernel, fixed=True)
        loop = NestedLoop(inner_tol=1e-12, inner_iterations=most)
        elbos.append(loop.run(model, progress=False).elbo[-1])
    # of some directions that the factors have to find
    np.testing.assert_allclose(*elbos, atol=0.05)


@pytest.mark.drill
@pytest.mark.slow
def test_the_nested_loop_learns(data):
    model = make(data, 2, NormalizedHinge(1.5), noisy())
    gpflow.set_trainable(model.likelihood, False)
    start = settle(make(data, 2, NormalizedHinge(1.5), noisy(), fixed=True))
    seen = []
    history = NestedLoop(tol=1e-6).run(
        model, callback=lambda n, _: seen.append(float(model.elbo()))
    )
    assert history.converged and history.elbo[-1] > start + 0.1
    assert (np.diff(history.elbo) >= 0).all()
    np.testing.assert_allclose(seen, history.elbo, rtol=1e-9)
    lengthscales = history.hyperparameters[".kernel.kernels[0].lengthscales"]
    np.testing.assert_array_equal(lengthscales[-1], model.kernel.kernels[0].lengthscales)
    # No step of all parameters together leads on.
    minimise(model.training_loss, model.trainable_variables)
    assert float(model.elbo()) < history.elbo[-1] + 1e-2
    svc = gb.model_selection.plug_in(model).fit(data[0], data[1][:, 0])
    assert svc.C == 1.5


@pytest.mark.drill
@pytest.mark.slow
def test_the_bound_never_falls_where_rounding_is_of_its_size():
    """Five equal rows and a variance of 1e12: a step's first look is below the last one's best."""
    X, Y = np.ones((5, 2)), np.array([[0.0], [1.0], [0.0], [1.0], [0.0]])
    model = FactorVGP((X, Y), gpflow.kernels.SquaredExponential(1e12), Hinge(1e-6), rank=2)
    elbo = NestedLoop(max_steps=6, inner_iterations=60, tol=0.0).run(model).elbo
    assert (np.diff(elbo) >= 0).all()


@pytest.mark.slow
def test_priors_of_hyperparameters_count(data):
    model = make(data, 3)
    gpflow.set_trainable(model.likelihood, False)
    model.kernel.lengthscales.prior = log_normal(1.0, 0.01)
    history = NestedLoop(max_steps=2).run(model)
    np.testing.assert_allclose(model.kernel.lengthscales, [1.0, 1.0], rtol=0.03)
    np.testing.assert_allclose(history.elbo[-1], -model.training_loss(), rtol=1e-9)


@pytest.mark.slow
def test_what_changes_nothing(data):
    X, Y = data
    order = np.random.default_rng(0).permutation(N)
    scaled = gpflow.kernels.SquaredExponential(2.0, lengthscales=10 * np.linspace(0.8, 1.5, 2))
    elbo, *others = (
        settle(model)
        for model in (
            make(data, 0, fixed=True),
            make((X, 2 * Y - 1), 0, fixed=True),
            make((X, 1 - Y), 0, fixed=True),
            make((X[order], Y[order]), 0, fixed=True),
            make((10 * X, Y), 0, kernel=scaled, fixed=True),
        )
    )
    np.testing.assert_allclose(others, elbo, rtol=1e-8)


@pytest.mark.drill
@pytest.mark.slow
def test_weights_of_rows_are_those_of_the_full_model(data):
    weight = np.r_[2.0, np.ones(N - 1)]
    elbo = NestedLoop(inner_tol=1e-14).run(make(data, N, fixed=True), sample_weight=weight).elbo
    full = BatchBSVM(data, ard(), Hinge(bound="exact"))
    best = CAVI(tol=1e-14).run(full, sample_weight=weight).elbo
    np.testing.assert_allclose(elbo[-1], best[-1], rtol=1e-4)  # the jitter, as above


@pytest.mark.drill
@pytest.mark.slow
def test_a_fit_goes_on_from_its_checkpoint(data, tmp_path):
    def model():
        model = make(data, 2)
        gpflow.set_trainable(model.likelihood, False)
        return model

    whole = NestedLoop(max_steps=3, tol=0).run(model())
    NestedLoop(max_steps=1, tol=0).run(model(), checkpoint=tmp_path)
    again = model()
    rest = NestedLoop(max_steps=3, tol=0).run(again, checkpoint=tmp_path)
    np.testing.assert_allclose(rest.elbo, whole.elbo, rtol=1e-9)
    np.testing.assert_allclose(again.elbo(), whole.elbo[-1], rtol=1e-9)


@pytest.mark.drill
@pytest.mark.slow
def test_a_rest_above_one():
    """A row's V exceeds 1 / [K^-1]_nn where the loss is not log-concave: one odd label of 13."""
    X = np.r_[np.random.default_rng(0).normal(size=(12, 1)) * 0.3, [[0.0]]]
    Y = np.r_[np.ones((12, 1)), [[0.0]]]
    kernel = gpflow.kernels.SquaredExponential(1.5) + gpflow.kernels.White(0.05)
    greatest = []
    for likelihood in (NormalizedHinge(1.0), Hinge(1.0, bound="exact")):
        model = make((X, Y), rank=0, likelihood=likelihood, kernel=kernel, fixed=True)
        NestedLoop(inner_tol=1e-9, inner_iterations=300).run(model, progress=False)
        greatest.append(model.q_rest.numpy().max())
    assert greatest[0] > 1.05 and greatest[1] <= 1 + 1e-6, greatest
