"""The model with its data inside: the same q, bound and predictions as `BSVM`."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import ard, bound_of, log_normal, make_data, minimise, some_sites, three_classes

from gpflow_bsvm.inference import CAVI, VEM
from gpflow_bsvm.inference.cavi import Ascent
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, Probit
from gpflow_bsvm.likelihoods.base import Sites
from gpflow_bsvm.models import BSVM
from gpflow_bsvm.papers.wenzel2017 import DualBSVM


@pytest.fixture(scope="module")
def data():
    return make_data()


def make_dual(data, likelihood=None, **kwargs):
    likelihood = likelihood or Hinge(bound="exact")
    return DualBSVM(data, ard(), likelihood, data[0][:10].copy(), **kwargs)


def with_some_sites(model):
    L = model.num_latent_gps
    for variable, value in zip(model.sites, some_sites(len(model.data[0]), L)):
        variable.assign(value)
    return model


@pytest.mark.parametrize("case", ["binary", "three classes", "mean function"])
def test_bound_and_q_are_those_of_bsvm(data, case):
    mean = gpflow.functions.Linear(np.ones((2, 1)), [0.3]) if case == "mean function" else None
    data, likelihood = data, Probit()
    if case == "three classes":
        data, likelihood = three_classes(data)[1], CrammerSinger(3)
    model = with_some_sites(make_dual(data, likelihood, mean_function=mean))
    same = model.to_bsvm()
    np.testing.assert_allclose(model.elbo(), same.elbo(model.data), rtol=1e-10)
    for full in ({}, {"full_cov": True}):
        for one, two in zip(model.predict_f(data[0], **full), same.predict_f(data[0], **full)):
            np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_loss_and_gradient_are_those_of_the_bound_at_fixed_sites(data):
    model = with_some_sites(make_dual(data))
    model.kernel.variance.prior = log_normal(1.0, 1.0)
    bound = bound_of(model, data)
    value, gradient = bound.value_and_gradient(Sites(*model.sites))
    with tf.GradientTape() as tape:
        loss = model.training_loss_closure()()
    np.testing.assert_allclose(-loss, value, rtol=1e-12)
    for one, two in zip(tape.gradient(loss, bound.hyperparameters.variables), gradient):
        np.testing.assert_allclose(-one, two, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_with_sites_alone_it_is_coordinate_ascent(data):
    model = make_dual(data)
    first = model.update_sites()
    for _ in range(30):
        elbo = model.update_sites()
    assert elbo >= first
    same = BSVM(model.kernel, model.likelihood, model.inducing_variable)
    CAVI(tol=1e-14).run(same, data)
    np.testing.assert_allclose(elbo, same.elbo(data), rtol=1e-9)
    for one, two in zip(model.predict_f(data[0]), same.predict_f(data[0])):
        np.testing.assert_allclose(one, two, atol=1e-6)  # both have converged, not to rounding


@pytest.mark.drill
@pytest.mark.slow
def test_gpflows_scipy_and_vem_learn_the_same(data):
    """The same hill, with SciPy's memory lost from round to round: it takes more of them."""
    model = make_dual(data)
    gpflow.set_trainable(model.inducing_variable, False)
    same = BSVM(ard(), Hinge(bound="exact"), data[0][:10].copy())
    gpflow.set_trainable(same.inducing_variable, False)
    history = VEM(tol=1e-9).run(same, data)
    scipy = gpflow.optimizers.Scipy()  # one for all rounds: it keeps its compiled loss
    for _ in range(2 * len(history)):
        elbo = model.update_sites()
        scipy.minimize(
            model.training_loss,
            model.trainable_variables,
            tf_fun_args={"autograph": False},
            options={"maxiter": 30},
        )
    # The maximum is flat: bounds agree sooner than parameters.
    np.testing.assert_allclose(elbo, history.elbo[-1], rtol=1e-5)
    np.testing.assert_allclose(model.kernel.lengthscales, same.kernel.lengthscales, rtol=1e-2)


def test_scipy_learns_from_the_first_call(data):
    """At sites of 0 the loss is the prior's, and its best kernel has a variance of 0."""
    model = make_dual(data)
    assert not np.allclose(model.sites.r, 0)
    before = model.elbo()
    minimise(model.training_loss, model.trainable_variables, maxiter=20)
    assert model.elbo() > before + 1
    assert model.kernel.variance.numpy() > 0.5
    errors = (model.predict_y(data[0])[0].numpy() > 0.5) != data[1]
    assert errors.mean() < 0.2


def test_its_posterior_predicts_as_it_does(data):
    model = make_dual(data)
    model.update_sites()
    for one, two in zip(model.posterior().predict_f(data[0]), model.predict_f(data[0])):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-10)


def test_an_interrupt_keeps_the_best_sites(data, monkeypatch):
    model, same = make_dual(data), make_dual(data)
    elbo = same.update_sites(2)
    step, calls = Ascent.step, []

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr(Ascent, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.update_sites(10)
    np.testing.assert_allclose(model.elbo(), elbo, rtol=1e-10)


def test_bad_input(data):
    X, Y = data
    with pytest.raises(ValueError, match="X has 3 columns, the inducing points have 2"):
        DualBSVM((X[:, [0, 1, 1]], Y), ard(), Hinge(), X[:5].copy())
    with pytest.raises(ValueError, match=r"Z must have shape \[N, .\], got shape .* Z\[:, None\]"):
        DualBSVM(data, ard(), Hinge(), X[:5, 0])
    with pytest.warns(UserWarning, match="duplicates"):
        DualBSVM(data, ard(), Hinge(), X[[0, 0]])
    with pytest.raises(ValueError, match="binary labels"):
        DualBSVM((X, Y + 5), ard(), Hinge(), X[:5].copy())
    with pytest.raises(TypeError, match=r"DualBSVM has no closed-form steps: use its to_bsvm\(\)"):
        VEM().run(make_dual(data), data)
    with pytest.raises(ValueError, match="sweeps must be at least 1, got 0"):
        make_dual(data).update_sites(0)


@pytest.mark.parametrize("full", [False, True])
def test_rows_of_another_width_are_refused(data, full):
    with pytest.raises(ValueError, match="X has 3 columns, the inducing points have 2"):
        make_dual(data).predict_f(np.ones((4, 3)), full_cov=full)
