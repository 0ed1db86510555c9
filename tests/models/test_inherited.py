"""What the sparse model has from GPflow's, and the jitter that it does it with."""

import copy
import pickle

import gpflow
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from helpers import as_svgp, make_model, randomise

import gpflow_bsvm as gb


@pytest.fixture
def pair(data):
    model = make_model(data, mean_function=gpflow.functions.Constant([0.2]), num_data=500)
    randomise(model)
    return model, as_svgp(model)


@pytest.mark.slow
def test_everything_inherited_is_that_of_svgp(pair, data):
    model, plain = pair
    X_new = np.random.default_rng(5).normal(size=(9, 2))
    calls = {
        "elbo": lambda m: m.elbo(data),
        "prior_kl": lambda m: m.prior_kl(),
        "objective": lambda m: m.maximum_log_likelihood_objective(data),
        "predict_f": lambda m: m.predict_f(X_new),
        "predict_f, full_cov": lambda m: m.predict_f(X_new, full_cov=True),
        "predict_f, outputs": lambda m: m.predict_f(X_new, full_output_cov=True),
        "predict_y": lambda m: m.predict_y(X_new),
        "predict_log_density": lambda m: m.predict_log_density((X_new, data[1][:9])),
        "posterior": lambda m: m.posterior().predict_f(X_new),
        "posterior, variables": lambda m: m.posterior(
            gpflow.posteriors.PrecomputeCacheType.VARIABLE
        ).predict_f(X_new, full_cov=True),
        "posterior, fused": lambda m: m.posterior(
            gpflow.posteriors.PrecomputeCacheType.NOCACHE
        ).fused_predict_f(X_new),
        "closure": lambda m: m.training_loss_closure(data, compile=False)(),
        "compiled closure": lambda m: m.training_loss_closure(data)(),
        "iterator": lambda m: m.training_loss_closure(
            iter(tf.data.Dataset.from_tensors(data).repeat()), compile=True
        )(),
    }
    for name, call in calls.items():
        one, two = tf.nest.flatten(call(model)), tf.nest.flatten(call(plain))
        for a, b in zip(one, two):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=name)


def test_rows_may_come_in_batches(pair, data):
    model, plain = pair
    X, Y = np.reshape(data[0][:12], [2, 2, 3, 2]), np.reshape(data[1][:12], [2, 2, 3, 1])
    found = model.predict_log_density((X, Y))
    np.testing.assert_allclose(found, plain.predict_log_density((X, Y)), rtol=1e-12)
    flat = model.predict_log_density((data[0][:12], data[1][:12]))
    np.testing.assert_allclose(found, np.reshape(flat, [2, 2, 3]), rtol=1e-12)


@pytest.mark.usefixtures("tf_seed")
def test_samples_follow_the_posterior(pair):
    model, _ = pair
    X_new = np.array([[0.0, 0.0], [1.0, -1.0]])
    samples = model.predict_f_samples(X_new, 4000).numpy()[..., 0]
    mean, covariance = model.predict_f(X_new, full_cov=True)
    # Four standard errors of 4000 samples.
    scale = np.sqrt(np.diag(covariance[0]))
    assert (np.abs(samples.mean(0) - mean[:, 0]) < 4 * scale / np.sqrt(4000)).all()
    np.testing.assert_allclose(np.cov(samples.T), covariance[0], atol=0.1 * scale.max() ** 2)


@pytest.mark.slow
def test_copies_are_independent_and_pickles_come_back(pair, data):
    model, _ = pair
    for again in (
        copy.deepcopy(model),
        gpflow.utilities.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    ):
        np.testing.assert_array_equal(again.elbo(data), model.elbo(data))
        before = model.elbo(data).numpy()
        again.natgrad_step(data)
        again.kernel.lengthscales.assign(0.3)
        assert again.elbo(data) != before
        assert model.elbo(data) == before


def test_parameters_are_those_of_svgp(pair, capsys):
    model, plain = pair
    one, two = (gpflow.utilities.parameter_dict(m) for m in (model, plain))
    assert one.keys() == two.keys()
    gpflow.utilities.print_summary(model)
    assert "BSVM.kernel.lengthscales" in capsys.readouterr().out
    gpflow.utilities.multiple_assign(model, gpflow.utilities.read_values(plain))
    frozen = gpflow.utilities.freeze(model)
    assert not frozen.trainable_variables


@pytest.mark.slow
def test_hyperparameters_train_beside_the_step(data):
    model = make_model(data)
    gpflow.set_trainable((model.q_mu, model.q_sqrt), False)
    adam = gpflow.keras.tf_keras.optimizers.Adam(0.05)
    loss = model.training_loss_closure(data)

    @tf.function
    def step():
        model.natgrad_step(data)
        adam.minimize(loss, model.trainable_variables)

    gb.inference.CAVI().run(model, data)
    start = model.elbo(data).numpy()
    for _ in range(40):
        step()
    model.natgrad_step(data)
    assert model.elbo(data).numpy() > start + 0.5
    assert model.kernel.lengthscales.numpy() != 1.0


def test_sparse_rows_are_refused_in_words_of_every_method(data):
    X, Y = scipy.sparse.csr_matrix(data[0]), data[1]
    model = make_model(data)
    for call in (lambda: model.elbo((X, Y)), lambda: model.training_loss((X, Y))):
        with pytest.raises(TypeError, match=r"^GPflow's methods .* need a dense X: give X.toarray"):
            call()
