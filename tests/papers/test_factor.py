"""Seeger's variational method: a Gaussian with factor-analysed covariance."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from factor_models import LIKELIHOODS, N, as_vgp, make, settle, with_some_q
from gpflow.likelihoods import Bernoulli
from helpers import ard, make_data

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, ECM
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, Probit
from gpflow_bsvm.models import BatchBSVM
from gpflow_bsvm.papers.seeger2000 import FactorVGP, NestedLoop
from gpflow_bsvm.papers.seeger2000.factor import (
    LEAST_REST,
)


@pytest.fixture(scope="module")
def data():
    return make_data(N)


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
    with pytest.raises(TypeError, match=r"NestedLoop needs a FactorVGP.*got BatchBSVM"):
        NestedLoop().run(BatchBSVM(data, ard(), Hinge()))
    with pytest.raises(ValueError, match="a FactorVGP stores its data"):
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
