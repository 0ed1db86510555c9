"""Hyperparameters by variational EM: never down, to where gradients vanish."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import (
    ard,
    assert_same_state,
    log_normal,
    make_model,
    minimise,
    state,
    three_classes,
)

import gpflow_bsvm as gb
from gpflow_bsvm.engine.hyperparameters import Hyperparameters
from gpflow_bsvm.inference import CAVI, VEM
from gpflow_bsvm.inference.algorithm import settled
from gpflow_bsvm.inference.vem import SiteBound
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, OneVsRest, Probit


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [Hinge, CrammerSinger, OneVsRest])
def test_a_penalty_is_learned_with_its_normaliser(data, likelihood):
    """Without, the evidence always prefers a smaller one."""
    X, Y = data
    classes = () if likelihood is Hinge else (3,)
    if classes:
        Y = np.digitize(X[:, :1], [-0.5, 0.5]).astype(float)
    model = make_model(
        (X, Y),
        likelihood=likelihood(*classes, bound="exact", normalizer=True),
        num_latent_gps=3 if classes else 1,
    )
    gpflow.set_trainable(model.inducing_variable, False)
    gpflow.set_trainable(model.likelihood.penalty, True)
    (name,) = [n for n in Hyperparameters(model).named if "penalty" in n]
    history = VEM(max_steps=4).run(model, (X, Y))
    assert all(b >= a - 1e-9 * abs(a) for a, b in zip(history.elbo, history.elbo[1:]))
    assert 0.1 < history.hyperparameters[name][-1] != 2.0
    model.likelihood = likelihood(*classes)
    gpflow.set_trainable(model.likelihood.penalty, True)
    with pytest.raises(ValueError, match="goes to 0: make the likelihood with normalizer=True"):
        VEM().run(model, (X, Y))


@pytest.mark.slow
def test_weights_of_several_kernels():
    """Multiple kernel learning (Wenzel et al. 2017, A.3): a sum, its variances the weights."""
    X = np.random.default_rng(0).normal(size=(150, 2))
    Y = (np.sin(2 * X[:, :1]) > 0).astype(float)  # the second input says nothing
    kernels = [gpflow.kernels.SquaredExponential(active_dims=[column]) for column in (0, 1)]
    for kernel in kernels:
        gpflow.set_trainable(kernel.lengthscales, False)
        kernel.variance.prior = log_normal(1.0, 1.0)
    model = gb.models.BSVM(
        kernels[0] + kernels[1], Hinge(bound="exact"), gb.inducing_points.kmeans(X, 20)
    )
    gpflow.set_trainable(model.inducing_variable, False)
    history = VEM().run(model, (X, Y))
    first, second = (history.hyperparameters[f".kernel.kernels[{j}].variance"][-1] for j in (0, 1))
    assert first > 5 * second
    # A maximum: no weight by itself could raise the bound.
    for kernel in kernels:
        best, value = model.elbo((X, Y)) + model.log_prior_density(), kernel.variance.numpy()
        for factor in (0.8, 1.25):
            kernel.variance.assign(factor * value)
            CAVI().run(model, (X, Y))
            assert model.elbo((X, Y)) + model.log_prior_density() < best + 1e-3 * abs(best)
        kernel.variance.assign(value)
        CAVI().run(model, (X, Y))


def fixed(model):
    gpflow.set_trainable(model.kernel, False)
    gpflow.set_trainable(model.inducing_variable, False)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [Hinge(bound="exact"), Probit()])
def test_with_nothing_to_learn_it_is_coordinate_ascent(data, likelihood):
    one, two = (fixed(make_model(data, likelihood=likelihood)) for _ in range(2))
    history = VEM().run(one, data)
    same = CAVI().run(two, data)
    assert history.elbo == same.elbo and history.converged and not history.hyperparameters
    assert_same_state(state(one), state(two), 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "classes, train_Z",
    [(3, True), *(pytest.param(*c, marks=pytest.mark.drill) for c in [(2, True), (3, False)])],
)
def test_the_bound_never_falls_and_is_the_models(data, classes, train_Z):
    if classes == 3:
        model, data = three_classes(data)
    else:
        model = make_model(data, kernel=ard(), likelihood=Hinge(bound="exact"))
    gpflow.set_trainable(model.inducing_variable, train_Z)
    model.kernel.lengthscales.prior = log_normal(1.4, 0.4)
    before = model.kernel.lengthscales.numpy(), model.inducing_variable.Z.numpy()
    history = VEM(tol=1e-5, max_steps=20).run(model, data)
    assert (np.diff(history.elbo) >= -1e-9 * abs(history.elbo[-1])).all()
    expected = model.elbo(data) + model.log_prior_density()
    np.testing.assert_allclose(history.elbo[-1], expected, rtol=1e-8)
    assert abs(before[0] - model.kernel.lengthscales.numpy()).max() > 1e-2
    assert (abs(before[1] - model.inducing_variable.Z.numpy()).max() > 1e-3) == train_Z


@pytest.mark.slow
def test_it_ends_where_gradients_vanish(data):
    """Of the ELBO itself, whose q is free: at a fixed point of the sites both are the same."""
    model = make_model(data, likelihood=Hinge(bound="exact"))
    gpflow.set_trainable(model.inducing_variable, False)
    VEM(tol=1e-12, max_steps=200, sweeps=20, iterations=50).run(model, data)
    with tf.GradientTape() as tape:
        elbo = model.elbo(data)
    for gradient in tape.gradient(elbo, model.kernel.trainable_variables):
        assert abs(gradient.numpy()) < 1e-3
    start = elbo.numpy()
    loss = model.training_loss_closure(data, compile=False)
    minimise(loss, model.trainable_variables, maxiter=300)
    np.testing.assert_allclose(model.elbo(data), start, rtol=1e-5)


KERNELS = {
    "sum": lambda: ard() + gpflow.kernels.Linear(0.1),
    "product": lambda: gpflow.kernels.Matern32() * gpflow.kernels.Matern52(active_dims=[0]),
    "white": lambda: gpflow.kernels.Matern12() + gpflow.kernels.White(0.1),
    "periodic": lambda: gpflow.kernels.Periodic(gpflow.kernels.SquaredExponential()),
}


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_any_kernel(data, name):
    model = make_model(data, kernel=KERNELS[name](), likelihood=Hinge(bound="exact"))
    history = VEM(max_steps=4).run(model, data)
    assert (np.diff(history.elbo) >= -1e-9 * abs(history.elbo[-1])).all()
    assert history.elbo[-1] > history.elbo[0]


@pytest.mark.drill
@pytest.mark.slow
def test_separate_kernels_and_no_whitening(data):
    X, Y = data[0], np.hstack([data[1], 1 - data[1]])
    kernel = gpflow.kernels.SeparateIndependent([ard(), gpflow.kernels.Matern32()])
    variable = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(X[:6].copy())
    )
    model = gb.models.BSVM(kernel, Hinge(), variable, num_latent_gps=2, whiten=False)
    history = VEM(max_steps=5).run(model, (X, Y))
    np.testing.assert_allclose(history.elbo[-1], model.elbo((X, Y)), rtol=1e-6)
    assert history.elbo[-1] > history.elbo[0]


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.01, 100.0])
def test_from_a_bad_start(data, factor):
    model = make_model(data, likelihood=Hinge(bound="exact"))
    model.kernel.lengthscales.assign(factor)
    model.kernel.lengthscales.prior = log_normal(1.0, 0.5)
    history = VEM().run(model, data)
    assert np.isfinite(history.elbo).all()
    assert 0.2 < model.kernel.lengthscales.numpy() < 5


@pytest.mark.slow
def test_an_interrupt_keeps_the_latest_round(data, monkeypatch):
    model = make_model(data, likelihood=Hinge(bound="exact"))
    seen = {}

    def callback(step, history):
        seen[step] = (model.kernel.lengthscales.numpy(), state(model))
        if step == 2:
            # In the middle of the next maximisation.
            monkeypatch.setattr(SiteBound, "value_and_gradient", interrupted)

    def interrupted(self, *_):
        for variable in self.hyperparameters.variables:
            variable.assign(tf.zeros_like(variable))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        VEM(tol=0).run(model, data, callback=callback)
    np.testing.assert_array_equal(model.kernel.lengthscales, seen[2][0])
    assert_same_state(state(model), seen[2][1], 1e-10)


@pytest.mark.slow
def test_sample_weights_are_repeated_rows(data):
    weight = np.random.default_rng(0).integers(1, 4, 60)
    one, two = (make_model(data, likelihood=Hinge(bound="exact")) for _ in range(2))
    repeated = tuple(np.repeat(part, weight, axis=0) for part in data)
    first = VEM(max_steps=3).run(one, data, sample_weight=weight)
    second = VEM(max_steps=3).run(two, repeated)
    np.testing.assert_allclose(first.elbo, second.elbo, rtol=1e-8)
    np.testing.assert_allclose(one.kernel.lengthscales, two.kernel.lengthscales, rtol=1e-5)


@pytest.mark.parametrize("option", ["max_steps", "sweeps", "iterations"])
def test_bad_options(option):
    with pytest.raises(ValueError, match=f"{option} must be at least 1, got 0"):
        VEM(**{option: 0})
    with pytest.raises(ValueError, match="tol must be at least 0"):
        VEM(tol=-1.0)


def test_it_stops_after_two_rounds_that_gain_little():
    assert settled([-10.0, -5.0, -4.9999, -4.9998], 1e-4)
    assert not settled([-10.0, -5.0, -4.9999], 1e-4)
    assert not settled([-5.0, -5.0], 1e-4)


@pytest.mark.slow
def test_the_normalised_evidence_tells_clean_rows_from_noise():
    """It does not always say a small penalty: over 2.5 on separable rows, under .5 on noise."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    clean = (X.sum(axis=1, keepdims=True) > 0).astype(float)
    noise = np.random.default_rng(1).integers(0, 2, (60, 1)).astype(float)
    ends = []
    for Y in (clean, noise):
        likelihood = Hinge(1.0, normalizer=True)
        gpflow.set_trainable(likelihood.penalty, True)
        model = gb.models.BatchBSVM((X, Y), gpflow.kernels.SquaredExponential(4.0), likelihood)
        VEM().run(model)
        ends.append(float(likelihood.penalty.numpy()))
    assert ends[0] > 2.5 and ends[1] < 0.5, ends
