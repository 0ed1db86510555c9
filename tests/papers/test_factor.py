"""Seeger's variational method: a Gaussian with factor-analysed covariance, and its nested loop."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.likelihoods import Bernoulli
from helpers import ard, log_normal, make_data
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessClassifier, kernels

import gpflow_bsvm as gb
from gpflow_bsvm.data.batch import Batch
from gpflow_bsvm.inference import CAVI, ECM
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, Probit, sites
from gpflow_bsvm.models import BatchBSVM
from gpflow_bsvm.papers.seeger2000 import FactorVGP, NestedLoop, NormalizedHinge
from gpflow_bsvm.papers.seeger2000.factored import (
    LEAST_REST,
    FactoredGaussian,
    factored_bound,
    moments,
    scale_of,
    scaled,
    scaled_bound,
    unscaled,
)

N = 14
#: As far as L-BFGS goes: it ends where rounding hides the next step.
TIGHT = NestedLoop(inner_tol=1e-14, inner_iterations=3000)
LIKELIHOODS = {
    "hinge": lambda: Hinge(bound="exact"),
    "normalised hinge": lambda: NormalizedHinge(1.5),
    "logistic": lambda: Bernoulli(invlink=tf.sigmoid),
}


@pytest.fixture(scope="module")
def data():
    return make_data(N)


def make(data, rank=3, likelihood=None, kernel=None, fixed=False, **how):
    likelihood = likelihood or Hinge(bound="exact")
    model = FactorVGP(data, kernel or ard(), likelihood, rank=rank, **how)
    if fixed:
        gpflow.set_trainable((model.kernel, model.mean_function, likelihood), False)
    return model


def noisy():
    """A kernel for which few factors are enough, and optimisers quick."""
    white = gpflow.kernels.White(0.1)
    gpflow.set_trainable(white, False)
    return ard() + white


def with_some_q(model, seed=0):
    rng, (num_rows, rank) = np.random.default_rng(seed), model.q_factors.shape
    scales = {"a": 0.5, "B": 0.4, "log_u": 0.7}
    shapes = {"a": 1, "B": rank, "log_u": 1}
    q = {name: s * rng.normal(size=(num_rows, shapes[name])) for name, s in scales.items()}
    model.assign_factored(FactoredGaussian(**q))
    return model


def as_vgp(model):
    """GPflow's own model, with the same q."""
    prior = model.kernel, model.likelihood, model.mean_function
    other = gpflow.models.VGP(model.data, *prior, num_latent_gps=1)
    root = model.root()
    q = model.moments()
    Sigma = np.diag(q.rest.numpy()[:, 0]) + q.factors.numpy() @ q.factors.numpy().T
    other.q_mu.assign(model.q_mu)
    white = np.linalg.solve(root.L, np.linalg.cholesky(Sigma))
    other.q_sqrt.assign(np.linalg.cholesky(white @ white.T)[None])
    return other


def by_hand(model):
    """sum_n E log p by GPflow at dense marginals, minus KL between dense Gaussians by NumPy."""
    X, Y = model.data
    K = model.kernel(X).numpy() + model.jitter * np.eye(len(X))
    m = np.broadcast_to(model.mean_function(X), Y.shape)[:, 0]
    q = model.moments()
    mu, C = q.mean.numpy()[:, 0], q.factors.numpy()
    Sigma = np.diag(q.rest.numpy()[:, 0]) + C @ C.T
    log_dets = np.linalg.slogdet(K)[1] - np.linalg.slogdet(Sigma)[1]
    inverse = np.linalg.inv(K)
    kl = (np.trace(inverse @ Sigma) + (mu - m) @ inverse @ (mu - m) - len(X) + log_dets) / 2
    of_rows = model.likelihood.variational_expectations(X, mu[:, None], np.diag(Sigma)[:, None], Y)
    return float(tf.reduce_sum(of_rows)) - kl


def settle(model, **how):
    """q at its optimum, the kernel as it is. :return: the ELBO."""
    return NestedLoop(**{**vars(TIGHT), **how}).run(model, progress=False).elbo[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rank"), [("hinge", 0), ("hinge", N), ("normalised hinge", 3), ("logistic", 3)]
)
def test_bound_is_that_of_a_dense_gaussian(data, name, rank):
    mean = gpflow.functions.Constant(0.3)
    model = with_some_q(make(data, rank, LIKELIHOODS[name](), mean_function=mean))
    np.testing.assert_allclose(model.elbo(), by_hand(model), rtol=1e-8)
    np.testing.assert_allclose(model.elbo(), as_vgp(model).elbo(), rtol=1e-10)
    np.testing.assert_allclose(model.training_loss(), -model.elbo(), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 3])
def test_predictions_are_those_of_a_dense_gaussian(data, rank):
    mean = gpflow.functions.Linear(np.ones((2, 1)), [0.3])
    model = with_some_q(make(data, rank, mean_function=mean))
    other, Xnew = as_vgp(model), make_data(5, seed=1)[0]
    same = model.to_bsvm()
    # The jitter is in the Gram matrix in one, and beside it in the other.
    np.testing.assert_allclose(same.elbo(), model.elbo(), rtol=1e-4)
    for how in ({}, {"full_cov": True}, {"full_output_cov": True}):
        their = same if "full_output_cov" in how else other  # VGP has none
        for one, two in zip(model.predict_f(Xnew, **how), their.predict_f(Xnew, **how)):
            np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-10)
    for one, two in zip(model.predict_y(Xnew), other.predict_y(Xnew)):
        np.testing.assert_allclose(one, two, rtol=1e-8)
    for predict in (model.posterior().predict_f, gb.prediction.predict_marginals):
        of = (Xnew,) if predict is not gb.prediction.predict_marginals else (model, Xnew)
        for one, two in zip(predict(*of), model.predict_f(Xnew)):
            np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-10)


def test_at_the_rows_it_is_q_itself_and_the_bound_is_that_of_a_dense_gaussian(data):
    model = with_some_q(make(data))
    np.testing.assert_allclose(model.elbo(), by_hand(model), rtol=1e-8)
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
        q, (mean, variance) = model.moments(), model.predict_f(data[0])
        np.testing.assert_allclose(mean, q.mean, atol=1e-8)
        np.testing.assert_allclose(variance, q.variance(), atol=1e-8)


def test_factors_at_the_start_are_seeded_and_not_zero(data):
    one, two, other = (make(data, seed=seed).q_factors.numpy() for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert (one != other).all() and (one != 0).all()


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
    gpflow.optimizers.Scipy().minimize(*what, options={"maxiter": 1000, "ftol": 1e-14})
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
def test_the_bound_rises_with_the_rank(data):
    elbos = [settle(make(data, rank, fixed=True)) for rank in (0, 2, 5, N)]
    assert (np.diff(elbos) > -1e-8).all()
    assert elbos[1] > elbos[0] + 0.1


@pytest.mark.drill
@pytest.mark.slow
def test_few_factors_need_noise(data):
    """What V cannot say of a smooth kernel, it can say of one with a White in it."""
    gaps = []
    for nugget in (0.0, 0.1):
        kernel = ard() + gpflow.kernels.White(nugget) if nugget else ard()
        few, all_ = (settle(make(data, rank, kernel=kernel, fixed=True)) for rank in (2, N))
        gaps.append(all_ - few)
    assert gaps[0] > 3 * gaps[1] > 0


def test_the_bound_is_right_where_the_factors_say_all(data):
    """V_n would be 0 there, and I be lost in C^T V^-1 C."""
    model = with_some_q(make(data, 8))
    q = model.factored()
    where = np.arange(N)[:, None] < 6
    model.assign_factored(q._replace(log_u=np.where(where, -35.0, q.log_u)))
    np.testing.assert_allclose(model.elbo(), by_hand(model), rtol=1e-8)
    np.testing.assert_allclose(model.q_rest.numpy()[:6], LEAST_REST, rtol=1e-8)


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


def some_scale(data, likelihood):
    model = with_some_q(make(data, likelihood=likelihood))
    weight = tf.constant(np.random.default_rng(1).uniform(0.5, 2.0, size=(N, 1)))
    q, root, batch = model.factored(), model.root(), Batch(*model.data, weight)
    return q, root, batch, scale_of(likelihood, q, root, batch)


def test_a_scale_is_of_the_sites_and_changes_no_bound(data):
    likelihood = NormalizedHinge(1.5)
    q, root, batch, R = some_scale(data, likelihood)
    of, L = moments(q, root), root.L.numpy()
    w = sites(likelihood, batch.X, of.mean, of.variance(), batch.Y)[0] * batch.weight
    np.testing.assert_allclose(R @ R.numpy().T, np.eye(N) + L.T @ (w.numpy() * L), rtol=1e-10)
    there = scaled(q, R)
    np.testing.assert_allclose(there.B, R.numpy().T @ q.B, rtol=1e-12)
    for part, back in zip(q, unscaled(there, R)):
        np.testing.assert_allclose(back, part, rtol=1e-10)
    bound = scaled_bound(likelihood, there, R, root, batch)
    np.testing.assert_allclose(bound, factored_bound(likelihood, q, root, batch), rtol=1e-12)


def test_there_is_a_scale_where_a_likelihood_has_no_slope(data):
    """GPflow's Bernoulli takes the logarithm of a probability that is 0."""
    likelihood = Bernoulli(invlink=tf.sigmoid)
    q, root, batch, _ = some_scale(data, likelihood)
    far = q._replace(a=1e5 * q.a)
    of = moments(far, root)
    w, r = sites(likelihood, batch.X, of.mean, of.variance(), batch.Y)
    assert np.isfinite(w).all() and not np.isfinite(r).all()
    assert np.isfinite(scale_of(likelihood, far, root, batch)).all()


def test_of_a_gaussian_likelihood_scaled_means_are_curved_by_one(data):
    """There the sites are the likelihood: a step in R^T a changes the slope by itself."""
    likelihood = gpflow.likelihoods.Gaussian(0.01)
    q, root, batch, R = some_scale(data, likelihood)
    slopes, step = [], np.random.default_rng(2).normal(size=(N, 1))
    for a in (scaled(q, R).a, scaled(q, R).a + step):
        with tf.GradientTape() as tape:
            tape.watch(a)
            bound = scaled_bound(likelihood, scaled(q, R)._replace(a=a), R, root, batch)
        slopes.append(tape.gradient(bound, a))
    np.testing.assert_allclose(slopes[0] - slopes[1], step, rtol=1e-8)


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
    gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
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


def test_priors_of_hyperparameters_count(data):
    model = make(data, 3)
    gpflow.set_trainable(model.likelihood, False)
    model.kernel.lengthscales.prior = log_normal(1.0, 0.01)
    history = NestedLoop(max_steps=4).run(model)
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


@pytest.mark.slow
def test_it_is_saved_and_loaded(data, tmp_path):
    model = with_some_q(make(data, 2, mean_function=gpflow.functions.Constant(0.3)))
    gb.save(model, tmp_path / "model")
    other = gb.load(tmp_path / "model")
    assert type(other) is FactorVGP
    np.testing.assert_array_equal(model.elbo(), other.elbo())


def test_bad_input(data):
    X, Y = data
    with pytest.raises(ValueError, match="rank must be at most the number of rows, 14, got 15"):
        make(data, 15)
    with pytest.raises(ValueError, match="rank must be at least 0, got -1"):
        make(data, -1)
    with pytest.raises(ValueError, match=r"rank must be a whole number, got 2\.5"):
        make(data, 2.5)
    for likelihood in (Hinge(), Bernoulli()):
        with pytest.raises(ValueError, match="binary labels must be in"):
            make((X, Y + 1), likelihood=likelihood)
    three = CrammerSinger(3), (X, np.arange(N)[:, None] % 3.0)
    several = gpflow.kernels.SharedIndependent(ard(), 2)
    for likelihood, of, kernel in ((*three, None), (Hinge(), (X, np.c_[Y, Y]), None)):
        with pytest.raises(ValueError, match=r"FactorVGP has one latent function.*BatchBSVM"):
            make(of, likelihood=likelihood, kernel=kernel)
    with pytest.raises(ValueError, match=r"FactorVGP has one latent function.*SharedIndependent"):
        make(data, kernel=several)
    with pytest.raises(TypeError, match=r"NestedLoop is for FactorVGP.*got BatchBSVM"):
        NestedLoop().run(BatchBSVM(data, ard(), Hinge()))
    with pytest.raises(ValueError, match="a FactorVGP holds its data"):
        NestedLoop().run(make(data), data)
    with pytest.raises(
        TypeError, match=r"FactorVGP has no closed-form steps: use .*NestedLoop, or its"
    ):
        CAVI().run(make(data))
    with pytest.raises(ValueError, match="has no sites at a point") as error:
        ECM().run(BatchBSVM(data, ard(), Probit()))
    assert "VEM" in str(error.value) and "NestedLoop" not in str(error.value)
    with pytest.raises(ValueError, match="X has dtype float32"):
        make(data).predict_f(X.astype(np.float32))


def test_a_rest_above_one():
    """A row's V exceeds 1 / [K^-1]_nn where the loss is not log-concave: one odd label of 13."""
    X = np.r_[np.random.default_rng(0).normal(size=(12, 1)) * 0.3, [[0.0]]]
    Y = np.r_[np.ones((12, 1)), [[0.0]]]
    kernel = gpflow.kernels.SquaredExponential(1.5) + gpflow.kernels.White(0.05)
    greatest = []
    for likelihood in (NormalizedHinge(1.0), Hinge(1.0, bound="exact")):
        model = make((X, Y), rank=0, likelihood=likelihood, kernel=kernel, fixed=True)
        TIGHT.run(model, progress=False)
        greatest.append(model.q_rest.numpy().max())
    assert greatest[0] > 1.05 and greatest[1] <= 1 + 1e-6, greatest
