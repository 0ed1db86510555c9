"""What GPflow's own notebooks do, with nothing changed but the names of likelihoods and models.

Each test follows the calls of one of the notebooks of GPflow's documentation, on less data and in
fewer steps.
"""

import itertools

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import set_trainable
from gpflow.keras import tf_keras
from gpflow.models import GPMC, SGPMC, SVGP, VGP
from gpflow.optimizers import NaturalGradient, Scipy
from gpflow.optimizers.natgrad import XiSqrtMeanVar
from gpflow.utilities import print_summary, to_default_float
from helpers import in_a_graph, make_data

from gpflow_bsvm.likelihoods import CrammerSinger, EpsilonInsensitive, Hinge, LevelHinge, Ordinal
from gpflow_bsvm.models import BSVM, BatchBSVM

FULL = pytest.mark.parametrize("full", [VGP, BatchBSVM])
SPARSE = pytest.mark.parametrize("sparse", [SVGP, BSVM])
X_NEW = np.linspace(0.0, 1.0, 25)[:, None]


def line(num_rows=20):
    """One input in (0, 1), and two classes that overlap."""
    X = np.linspace(0.0, 1.0, num_rows)[:, None]
    return X, (X + 0.15 * np.sin(40 * X) > 0.5).astype(float)


def three_classes(num_rows=30):
    """:return: X [N, 1], and labels [N] of integers."""
    X = np.linspace(0.0, 1.0, num_rows)[:, None]
    return X, (np.floor(7 * X[:, 0]) % 3).astype(int)


def minimise(loss, model, steps=3):
    """Without AutoGraph: to rewrite GPflow's sources takes half of the time."""
    how = {"tf_fun_args": {"autograph": False}, "options": {"maxiter": steps}}
    return Scipy().minimize(loss, model.trainable_variables, **how)


def train(model, data):
    """What the notebook about kinds of data calls a generic model."""
    minimise(gpflow.models.training_loss_closure(model, data, compile=False), model)
    print_summary(model, "simple")


# --- getting started: classification and other distributions -------------------------------------


def look_at_probabilities(model):
    draws = model.predict_f_samples(X_NEW, 10).numpy().squeeze().T
    p = model.likelihood.invlink(draws).numpy()
    assert p.shape == (25, 10) and (p > 0).all() and (p < 1).all()
    mean, _ = model.predict_f(X_NEW)
    assert model.likelihood.invlink(mean).shape == (25, 1)
    y, variance = model.predict_y(X_NEW, full_cov=False)
    np.testing.assert_allclose(variance, y * (1 - y), rtol=1e-12)
    assert y[0] < 0.5 < y[-1]


@pytest.mark.usefixtures("tf_seed")
@FULL
def test_classification_with_q_over_all_rows(full):
    data = line()
    model = full(data, kernel=gpflow.kernels.SquaredExponential(), likelihood=Hinge())
    train(model, data)
    look_at_probabilities(model)


@pytest.mark.usefixtures("tf_seed")
@SPARSE
def test_classification_with_inducing_points(sparse):
    data = line()
    model = sparse(
        kernel=gpflow.kernels.SquaredExponential(),
        likelihood=Hinge(),
        inducing_variable=np.linspace(0.0, 1.0, 4)[:, None],
    )
    train(model, data)
    look_at_probabilities(model)


@FULL
def test_regression_with_outliers(full):
    X = line()[0]
    data = X, np.exp(X)
    model = full(data, gpflow.kernels.SquaredExponential(), EpsilonInsensitive())
    minimise(model.training_loss, model)
    mean, variance = model.predict_y(X_NEW, full_cov=False)
    assert mean.shape == variance.shape == (25, 1) and (variance.numpy() > 0).all()


# --- several classes -----------------------------------------------------------------------------


@pytest.mark.parametrize("sparse, options", [(SVGP, {"q_diag": True}), (BSVM, {})])
def test_several_classes(sparse, options):
    data = X, _ = three_classes()
    model = sparse(
        kernel=gpflow.kernels.Matern32() + gpflow.kernels.White(variance=0.01),
        likelihood=CrammerSinger(3),
        inducing_variable=X[::5].copy(),
        num_latent_gps=3,
        whiten=True,
        **options,
    )
    set_trainable(model.kernel.kernels[1].variance, False)
    set_trainable(model.inducing_variable, False)
    minimise(model.training_loss_closure(data, compile=False), model)
    mean, variance = model.predict_f(X_NEW)
    p, _ = model.predict_y(X_NEW)
    assert mean.shape == variance.shape == p.shape == (25, model.likelihood.num_classes)
    np.testing.assert_allclose(tf.reduce_sum(p, axis=1), 1, rtol=1e-12)


# --- ordered classes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "full, options",
    [(VGP, {"num_latent_gps": 2}), pytest.param(BatchBSVM, {}, marks=pytest.mark.slow)],
)
def test_ordinal_regression(full, options):
    X = line()[0]
    Y = np.round(4 * np.square(X))
    bin_edges = np.arange(np.unique(Y).size + 1, dtype=float)
    bin_edges = bin_edges - bin_edges.mean()  # one class more than there are labels
    likelihood = Ordinal(bin_edges)
    model = full(data=(X, Y), kernel=gpflow.kernels.Matern32(), likelihood=likelihood, **options)
    minimise(model.training_loss, model, 10)
    mean, variance = model.predict_y(X_NEW)
    assert mean.shape == variance.shape == (25, 1) and mean[0] + 1 < mean[-1]
    labels = np.arange(likelihood.num_bins)
    densities = [model.predict_log_density((X_NEW, np.full_like(X_NEW, y))) for y in labels]
    np.testing.assert_allclose(np.exp(densities).sum(axis=0), 1, rtol=1e-10)


@pytest.mark.parametrize("full", [VGP, GPMC])
@pytest.mark.parametrize(
    "likelihood, number", [(Ordinal(3), 2), (LevelHinge(), 2), (CrammerSinger(3), 3)]
)
def test_a_number_of_functions_that_gpflow_cannot_know_is_told(full, likelihood, number):
    X, Y = three_classes()
    Y = Y[:, None] > 0 if isinstance(likelihood, LevelHinge) else Y[:, None]
    model = full((X, Y.astype(float)), gpflow.kernels.Matern32(), likelihood)
    with pytest.raises(ValueError, match=f"needs a model with num_latent_gps={number}, got 1"):
        model.training_loss()


# --- natural gradients ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("full, sparse", [(VGP, SVGP), (BatchBSVM, BSVM)])
def test_natural_gradients(full, sparse):
    X = np.random.default_rng(0).uniform(size=(40, 2))
    data = X, np.sin(10 * X[:, :1]) + 5 * X[:, 1:] ** 2
    # Steps of 1 ascend for this bound, as for a Gaussian likelihood, but not for the exact one.
    likelihood = EpsilonInsensitive(bound="augmented")
    model = full(data, kernel=gpflow.kernels.Matern52(), likelihood=likelihood)
    adam, natural = tf_keras.optimizers.Adam(0.01), NaturalGradient(gamma=1.0)
    before = model.elbo().numpy()
    for part in (model.q_mu, model.q_sqrt):
        set_trainable(part, False)
    for _ in range(3):
        natural.minimize(model.training_loss, var_list=[(model.q_mu, model.q_sqrt)])
        adam.minimize(model.training_loss, var_list=model.trainable_variables)
    assert model.elbo() > before
    Z = tf.convert_to_tensor(X[:10])
    kernel, likelihood = gpflow.kernels.Matern52(), EpsilonInsensitive()
    model = sparse(kernel=kernel, likelihood=likelihood, inducing_variable=Z)
    q, natural = [(model.q_mu, model.q_sqrt)], NaturalGradient(gamma=0.1)
    before = model.elbo(data).numpy()
    natural.minimize(model.training_loss_closure(data, compile=False), var_list=q)
    assert model.elbo(data) > before
    batches = iter(tf.data.Dataset.from_tensor_slices(data).repeat().batch(20))
    loss = model.training_loss_closure(batches, compile=False)
    for _ in range(2):
        natural.minimize(loss, var_list=q)
        adam = tf_keras.optimizers.Adam(0.01)
        adam.minimize(loss, var_list=model.trainable_variables)
    assert np.isfinite(np.mean([model.elbo(next(batches)) for _ in range(2)]))


@FULL
def test_natural_gradients_of_two_labels_a_row(full):
    X = np.random.default_rng(0).uniform(size=(20, 2))
    data = X, np.where(X > 0.5, 1.0, -1.0)
    model = full(data, kernel=gpflow.kernels.Matern52(), likelihood=Hinge())
    assert model.q_mu.shape == (20, 2)
    before = model.elbo().numpy()
    NaturalGradient(0.1).minimize(model.training_loss, var_list=[(model.q_mu, model.q_sqrt)])
    other = [(model.q_mu, model.q_sqrt, XiSqrtMeanVar())]
    NaturalGradient(0.01).minimize(model.training_loss, var_list=other)
    assert model.elbo() > before


# --- Markov chains -------------------------------------------------------------------------------


def chain(model):
    """:return: GPflow's helper, and draws of what is trainable, unconstrained."""
    one = to_default_float(1.0)
    for parameter in model.kernel.trainable_parameters:
        parameter.prior = tfp.distributions.Gamma(one, one)
    minimise(model.training_loss, model)
    helper = gpflow.optimizers.SamplingHelper(
        model.log_posterior_density, model.trainable_parameters
    )
    hmc = tfp.mcmc.HamiltonianMonteCarlo(helper.target_log_prob_fn, 0.01, num_leapfrog_steps=2)
    adaptive = tfp.mcmc.SimpleStepSizeAdaptation(
        hmc, 5, target_accept_prob=to_default_float(0.75), adaptation_rate=0.1
    )

    @in_a_graph
    def run():
        return tfp.mcmc.sample_chain(
            5,
            helper.current_state,
            kernel=adaptive,
            num_burnin_steps=5,
            trace_fn=lambda _, results: results.inner_results.is_accepted,
            seed=0,
        )

    samples, accepted = run()
    assert accepted.numpy().any()
    return helper, samples


@pytest.mark.slow
@pytest.mark.usefixtures("tf_seed")
def test_draws_for_several_classes():
    X, Y = three_classes()
    model = SGPMC(
        (X, Y[:, None]),
        kernel=gpflow.kernels.Matern32(lengthscales=0.1) + gpflow.kernels.White(variance=0.01),
        likelihood=CrammerSinger(3),
        inducing_variable=X[::5].copy(),
        num_latent_gps=3,
    )
    set_trainable(model.kernel.kernels[1].variance, False)
    set_trainable(model.inducing_variable, False)
    helper, samples = chain(model)
    constrained = helper.convert_to_constrained_values(samples)
    for parameter, values in zip(model.trainable_parameters, constrained):
        parameter.assign(values[-1])
    assert np.squeeze(model.predict_f_samples(X_NEW, 1)).shape == (25, 3)
    np.testing.assert_allclose(tf.reduce_sum(model.predict_y(X_NEW)[0], axis=1), 1, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("tf_seed")
def test_draws_for_two_classes():
    kernel = gpflow.kernels.Matern32() + gpflow.kernels.Constant()
    model = GPMC(line(), kernel, Hinge())
    helper, samples = chain(model)
    f = []
    for n in range(3):
        for variable, values in zip(helper.current_state, samples):
            variable.assign(values[n])
        f.append(model.predict_f_samples(X_NEW, 5))
    p = model.likelihood.invlink(np.vstack(f)).numpy()
    assert p.shape == (15, 25, 1) and p[:, 0].mean() < 0.5 < p[:, -1].mean()


# --- convolutional kernels -----------------------------------------------------------------------


def images(num_rows=16, size=7):
    """A bar that lies (0) or stands (1), anywhere."""
    rng = np.random.default_rng(0)
    pictures, Y = np.zeros((num_rows, size, size)), np.arange(num_rows)[:, None] % 2
    for picture, standing in zip(pictures, Y[:, 0]):
        row, column = rng.integers(1, size - 4), rng.integers(1, size - 1)
        (picture.T if standing else picture)[column, row : row + 4] = 1
    return pictures.reshape(num_rows, -1), Y.astype(float)


@pytest.mark.parametrize("sparse", [pytest.param(SVGP, marks=pytest.mark.slow), BSVM])
def test_convolutional_kernels(sparse):
    X, Y = data = images()
    kernel = gpflow.kernels.Convolutional(gpflow.kernels.SquaredExponential(), [7, 7], [3, 3])
    patches = np.unique(kernel.get_patches(X).numpy().reshape(-1, 9), axis=0)
    model = sparse(kernel, Hinge(), gpflow.inducing_variables.InducingPatches(patches))
    set_trainable(model.inducing_variable, False)
    loss = model.training_loss_closure(data, compile=False)
    before = loss()
    for trainable in (False, True):
        set_trainable(model.kernel.weights, trainable)
        minimise(loss, model, 10)
    assert loss() < before
    assert np.mean((model.predict_y(X)[0] > 0.5).numpy().astype(float) == Y) == 1


# --- big data ------------------------------------------------------------------------------------


@SPARSE
@pytest.mark.parametrize(
    "likelihood", [EpsilonInsensitive, pytest.param(Hinge, marks=pytest.mark.slow)]
)
def test_big_data(sparse, likelihood):
    X, Y = make_data(400)
    model = sparse(gpflow.kernels.SquaredExponential(), likelihood(), X[:10].copy(), num_data=400)
    elbo = in_a_graph(model.elbo)
    whole = elbo((tf.constant(X), tf.constant(Y))).numpy()
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).repeat()
    parts = [elbo(batch).numpy() for batch in itertools.islice(dataset.batch(100), 4)]
    np.testing.assert_allclose(np.mean(parts), whole, rtol=1e-10)
    mean, variance = model.predict_y(X[:7])
    assert (mean - 2 * variance**0.5).shape == (7, 1)
    set_trainable(model.inducing_variable, False)
    loss = model.training_loss_closure(iter(dataset.batch(100)), compile=False)
    optimizer = tf_keras.optimizers.Adam(0.05)

    @in_a_graph
    def step():
        optimizer.minimize(loss, model.trainable_variables)

    for _ in range(10):
        step()
    assert elbo((tf.constant(X), tf.constant(Y))) > whole
    assert model.inducing_variable.Z.numpy().shape == (10, 2)
