"""The batch model: a sparse one at Z = X, GPflow's VGP, and the linear one in the dual."""

import gpflow
import numpy as np
import pytest
from helpers import make_data, minimise, state

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, SVI, VEM
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge
from gpflow_bsvm.models import BSVM, BatchBSVM, LinearBSVM, batch

TIGHT = CAVI(tol=1e-13, max_steps=2000)


@pytest.fixture(scope="module")
def data():
    return make_data(30)


def kernel():
    return gpflow.kernels.Matern52(variance=2.0, lengthscales=0.8)


def hinge():
    return Hinge(bound="exact")


@pytest.fixture(scope="module")
def fitted(data):
    model = BatchBSVM(data, kernel(), hinge(), mean_function=gpflow.functions.Constant(0.2))
    TIGHT.run(model)
    return model


def test_it_is_the_sparse_model_at_the_data(data, fitted):
    mean_function = gpflow.functions.Constant(0.2)
    other = BSVM(kernel(), hinge(), data[0].copy(), mean_function=mean_function)
    history = TIGHT.run(other, data)
    np.testing.assert_allclose(fitted.elbo(), history.elbo[-1], rtol=1e-12)
    for one, two in zip(fitted.predict_f(data[0]), other.predict_f(data[0])):
        np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.drill
@pytest.mark.slow
def test_gpflows_vgp_has_the_same_optimum(data, fitted):
    mean_function = gpflow.functions.Constant(0.2)
    other = gpflow.models.VGP(data, kernel(), hinge(), mean_function=mean_function)
    gpflow.set_trainable((other.kernel, other.mean_function), False)
    natgrad = gpflow.optimizers.NaturalGradient(0.5)
    for _ in range(60):
        natgrad.minimize(other.training_loss, [(other.q_mu, other.q_sqrt)])
    # The jitter of the Gram matrix enters their residuals in different places.
    np.testing.assert_allclose(fitted.elbo(), other.elbo(), rtol=1e-5)
    for one, two in zip(fitted.predict_f(data[0] + 0.1), other.predict_f(data[0] + 0.1)):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def test_a_linear_kernel_is_the_linear_model(data):
    linear = LinearBSVM(2, hinge(), 1.5, bias=False)
    TIGHT.run(linear, data)
    model = BatchBSVM(data, gpflow.kernels.Linear(variance=1.5), hinge())
    TIGHT.run(model)
    # 30 points in 2 dimensions: the Gram matrix has rank 2, the rest of it is jitter.
    np.testing.assert_allclose(model.elbo(), linear.elbo(data), rtol=1e-5)
    for one, two in zip(model.predict_f(data[0]), linear.predict_f(data[0])):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)


@pytest.mark.drill
@pytest.mark.slow
def test_it_holds_its_data(data, fitted):
    np.testing.assert_allclose(fitted.training_loss(), -fitted.elbo(data), rtol=1e-14)
    np.testing.assert_allclose(fitted.training_loss_closure()(), fitted.training_loss())
    models = [BatchBSVM(data, kernel(), hinge()) for _ in range(3)]
    TIGHT.run(models[0])
    TIGHT.run(models[1], data)
    gb.fit(models[2])
    np.testing.assert_array_equal(state(models[0])[0], state(models[1])[0])
    np.testing.assert_allclose(models[2].elbo(), models[0].elbo(), rtol=1e-4)
    SVI(batch_size=10, max_steps=5).run(models[2])
    scipy = BatchBSVM(data, kernel(), hinge())
    gpflow.set_trainable((scipy.kernel, scipy.likelihood), False)
    minimise(scipy.training_loss, scipy.trainable_variables, maxiter=500)
    np.testing.assert_allclose(scipy.elbo(), models[0].elbo(), rtol=1e-4)  # L-BFGS stops there


@pytest.mark.slow
def test_a_kernel_is_learned(data):
    model = BatchBSVM(data, kernel(), hinge())
    start = gb.fit(model).elbo[-1]
    history = VEM().run(model)
    assert (np.diff(history.elbo) >= 0).all() and history.elbo[-1] > start + 0.1
    np.testing.assert_array_equal(model.inducing_variable.Z, data[0])


@pytest.mark.slow
def test_equal_rows_count_twice(data):
    """As a weight of 2: the jitter tells them apart, and is what they differ by."""
    X, Y = data
    again = np.vstack([X, X[:5]]), np.vstack([Y, Y[:5]])
    model, other = BatchBSVM(again, kernel(), hinge()), BatchBSVM(data, kernel(), hinge())
    TIGHT.run(model)
    TIGHT.run(other, sample_weight=np.r_[np.full(5, 2.0), np.ones(25)])
    for one, two in zip(model.predict_f(X), other.predict_f(X)):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-3)


def test_several_classes(data):
    Y = np.digitize(data[0][:, :1], [-0.5, 0.5]).astype(float)
    model = BatchBSVM((data[0], Y), kernel(), CrammerSinger(3))
    assert gb.fit(model).converged and model.num_latent_gps == 3


def test_too_many_rows(monkeypatch):
    X, Y = np.random.default_rng(0).normal(size=(400_000, 1)), np.tile([[0.0], [1.0]], (200_000, 1))
    with pytest.raises(ValueError, match=r"400000 rows would need 2\.38e\+04 GB, .* use .*BSVM"):
        BatchBSVM((X, Y), kernel(), hinge())

    def unknown(_):
        raise ValueError

    monkeypatch.setattr(batch.os, "sysconf", unknown)
    BatchBSVM((X[:10], Y[:10]), kernel(), hinge())


def test_no_data_anywhere(data):
    model = BSVM(kernel(), hinge(), data[0][:5].copy())
    for run in (gb.fit, CAVI().run, SVI().run, VEM().run):
        with pytest.raises(TypeError, match="BSVM holds no data: give"):
            run(model)
    with pytest.raises(ValueError, match="X has 30 rows and Y has 29"):
        BatchBSVM((data[0], data[1][1:]), kernel(), hinge())
