"""Hyperparameters by variational EM: the bound at fixed sites, its gradient, and the loop."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from helpers import (
    ard,
    assert_same_state,
    bound_of,
    log_normal,
    make_data,
    make_model,
    some_sites,
    state,
    three_classes,
)

import gpflow_bsvm as gb
from gpflow_bsvm.engine.hyperparameters import Hyperparameters
from gpflow_bsvm.engine.m_step import SiteBound
from gpflow_bsvm.engine.projection import Projector
from gpflow_bsvm.engine.quasi_newton import maximise
from gpflow_bsvm.inference import CAVI, VEM
from gpflow_bsvm.inference.algorithm import settled
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, OneVsRest, Probit
from gpflow_bsvm.likelihoods.base import Sites

# --- the bound -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["augmented", "exact"])
def test_it_is_the_elbo_of_the_q_that_the_sites_make(data, bound):
    """In the words of GPflow: the sites as a Gaussian likelihood, then SVGP's ELBO."""
    mean_function = gpflow.functions.Linear([[0.4], [0.2]])
    model = make_model(data, likelihood=Hinge(bound=bound), mean_function=mean_function)
    (w, r), weight = some_sites(60), np.random.default_rng(1).uniform(0.5, 2, size=(60, 1))
    value, _ = bound_of(model, data, weight).value_and_gradient(Sites(w, r))
    phi, _, prior_mean = Projector(model.prior, model.prior_factor())(tf.constant(data[0]))
    phi, w, r = phi[0].numpy(), w.numpy(), r.numpy()
    P = np.eye(8) + phi.T @ (weight * w * phi)
    h = phi.T @ (weight * (r - w * prior_mean.numpy()))
    model.q_mu.assign(np.linalg.solve(P, h))
    model.q_sqrt.assign(np.linalg.cholesky(np.linalg.inv(P))[None])
    mean, variance = model.predict_f(data[0])
    terms = model.likelihood.variational_expectations(data[0], mean, variance, data[1])
    expected = np.sum(weight[:, 0] * terms.numpy()) - model.prior_kl().numpy()
    np.testing.assert_allclose(value, expected, rtol=1e-9)


def numerical_gradient(bound, sites):
    gradients = []
    for variable in bound.hyperparameters.variables:
        start = variable.numpy()
        slopes = np.zeros(start.size)
        for n in range(start.size):
            values = []
            for step in (1e-5, -1e-5):
                moved = start.copy().reshape(-1)
                moved[n] += step
                variable.assign(moved.reshape(start.shape))
                values.append(float(bound.value_and_gradient(sites)[0]))
            slopes[n] = (values[0] - values[1]) / 2e-5
        variable.assign(start)
        gradients.append(slopes.reshape(start.shape))
    return gradients


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_gradient_by_differences(data, classes):
    """With respect to kernel, inducing points, mean function and penalty, priors included."""
    if classes == 3:
        model, data = three_classes(data)
    else:
        model = make_model(data, kernel=ard(), likelihood=Hinge(bound="exact"))
    model.mean_function = gpflow.functions.Constant(np.full(1, 0.3))
    gpflow.set_trainable(model.likelihood.penalty, True)
    model.kernel.lengthscales.prior = log_normal(1.4, 0.4)
    model.kernel.variance.prior = tfp.distributions.Gamma(np.float64(2), np.float64(1))
    bound = bound_of(model, data)
    assert len(bound.hyperparameters.variables) == 5
    sites = some_sites(60, model.num_latent_gps)
    _, gradient = bound.value_and_gradient(sites)
    for one, other in zip(gradient, numerical_gradient(bound, sites)):
        # Central differences of step 1e-5 on values of order 100.
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [pytest.param(2, marks=pytest.mark.drill), 3])
def test_chunks_change_nothing(data, classes):
    model, data = three_classes(data) if classes == 3 else (make_model(data, kernel=ard()), data)
    model.kernel.variance.prior = log_normal(4.0, 1.0)
    sites = some_sites(60, model.num_latent_gps)
    value, gradient = bound_of(model, data).value_and_gradient(sites)
    again, parts = bound_of(model, data, chunk_rows=17).value_and_gradient(sites)
    np.testing.assert_allclose(value, again, rtol=1e-12)
    for one, other in zip(gradient, parts):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("on", ["constrained", "unconstrained"])
def test_priors_are_gpflows(data, on):
    model = make_model(data, kernel=ard())
    model.kernel.lengthscales.prior = log_normal(1.4, 0.4)
    model.kernel.variance.prior = tfp.distributions.Gamma(np.float64(2), np.float64(1))
    for parameter in (model.kernel.lengthscales, model.kernel.variance):
        parameter.prior_on = on
    bound = bound_of(model, data)
    np.testing.assert_allclose(
        bound.hyperparameters.log_prior(), model.log_prior_density(), rtol=1e-12
    )
    gpflow.set_trainable(model.kernel.variance, False)  # its prior no longer counts
    np.testing.assert_allclose(
        Hyperparameters(model).log_prior(), model.log_prior_density(), rtol=1e-12
    )


@pytest.mark.slow
def test_a_prior_that_ties_lengthscales(data):
    """TFP's `TransformedDistribution` cannot be copied, and need not be."""
    tfd = tfp.distributions
    model = make_model(data, kernel=ard())
    gpflow.set_trainable(model.inducing_variable, False)
    normal = tfd.MultivariateNormalTriL(np.zeros(2), 0.4 * np.array([[1.0, 0.0], [0.9, 0.4]]))
    model.kernel.lengthscales.prior = tfd.TransformedDistribution(normal, tfp.bijectors.Exp())
    bound, sites = bound_of(model, data), some_sites(60)
    value, gradient = bound.value_and_gradient(sites)
    with tf.GradientTape() as tape:
        log_prior = model.log_prior_density()
    theirs = tape.gradient(log_prior, bound.hyperparameters.variables, unconnected_gradients="zero")
    np.testing.assert_allclose(bound.hyperparameters.log_prior(), log_prior, rtol=1e-12)
    model.kernel.lengthscales.prior = None
    flat_value, flat = bound_of(model, data).value_and_gradient(sites)
    np.testing.assert_allclose(value, flat_value + log_prior, rtol=1e-12)
    for one, other, prior in zip(gradient, flat, theirs):
        np.testing.assert_allclose(one, other + prior, rtol=1e-8, atol=1e-10)


def test_what_is_learned(data):
    model = make_model(data, kernel=ard() + gpflow.kernels.White())
    gpflow.set_trainable(model.inducing_variable, False)
    assert set(Hyperparameters(model).named) == {
        ".kernel.kernels[0].variance",
        ".kernel.kernels[0].lengthscales",
        ".kernel.kernels[1].variance",
    }


@pytest.mark.slow
def test_values_have_the_names_of_gpflow(data):
    model = make_model(data, kernel=ard())
    history = VEM(max_steps=2, tol=0).run(model, data)
    assert set(history.hyperparameters) == {
        ".kernel.variance",
        ".kernel.lengthscales",
        ".inducing_variable.Z",
    }
    for name, values in history.hyperparameters.items():
        assert len(values) == len(history)
        np.testing.assert_array_equal(values[-1], gpflow.utilities.parameter_dict(model)[name])


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
    part = getattr(model.likelihood, "hinge", model.likelihood)
    gpflow.set_trainable(part.penalty, True)
    (name,) = [n for n in Hyperparameters(model).named if "penalty" in n]
    history = VEM(max_steps=4).run(model, (X, Y))
    assert all(b >= a - 1e-9 * abs(a) for a, b in zip(history.elbo, history.elbo[1:]))
    assert 0.1 < history.hyperparameters[name][-1] != 2.0
    part.normalizer = False
    with pytest.raises(ValueError, match="runs to 0: make the likelihood with normalizer=True"):
        VEM().run(model, (X, Y))


def test_starts_that_cannot_be_learned_from(data):
    model = make_model(data, kernel=ard())
    tfd = tfp.distributions
    model.kernel.variance.prior = tfd.Uniform(np.float64(100), np.float64(200))
    with pytest.raises(ValueError, match=r"the prior of .kernel.variance, Uniform, excludes"):
        VEM().run(model, data)
    model.kernel.variance.prior = None
    model.kernel.variance.unconstrained_variable.assign(np.nan)
    with pytest.raises(ValueError, match=r".kernel.variance is nan"):
        VEM().run(model, data)


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


class WarpedKernel(gpflow.kernels.SquaredExponential):
    """A deep kernel in small: it holds a bare variable, as Keras layers do."""

    def __init__(self):
        super().__init__()
        self.stretch = tf.Variable(1.3, dtype=tf.float64)

    def K(self, X, X2=None):
        return super().K(self.stretch * X, None if X2 is None else self.stretch * X2)


@pytest.mark.slow
def test_bare_variables_are_learned_too(data):
    model = make_model(data, kernel=WarpedKernel(), likelihood=Hinge(bound="exact"))
    gpflow.set_trainable(model.inducing_variable, False)
    history = VEM(max_steps=3).run(model, data)
    assert history.elbo[-1] > history.elbo[0]
    assert history.hyperparameters[".kernel.stretch"][-1] != 1.3


# --- the loop ------------------------------------------------------------------------------------


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
    gpflow.optimizers.Scipy().minimize(
        model.training_loss_closure(data), model.trainable_variables, options={"maxiter": 300}
    )
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
def test_a_value_that_is_not_finite_costs_a_shorter_step(data):
    model = make_model(data, kernel=ard())
    bound, sites = bound_of(model, data), some_sites(60)
    start = [variable.numpy() for variable in bound.hyperparameters.variables]
    before, _ = bound.value_and_gradient(sites)
    original, calls = bound.value_and_gradient, []

    def sometimes(*arguments):
        calls.append(1)
        if len(calls) == 2:
            return tf.constant(np.nan, tf.float64), original(*arguments)[1]
        if len(calls) == 4:
            raise tf.errors.InvalidArgumentError(None, None, "no Cholesky factor")
        return original(*arguments)

    maximise(lambda: sometimes(sites), bound.hyperparameters.variables, 5)
    assert len(calls) > 4
    assert original(sites)[0] > before
    assert any(abs(a - b.numpy()).max() > 0 for a, b in zip(start, bound.hyperparameters.variables))


def test_where_nothing_can_be_evaluated_all_stays(data):
    model = make_model(data, kernel=ard())
    bound = bound_of(model, data)
    start = [variable.numpy() for variable in bound.hyperparameters.variables]

    def never():
        raise tf.errors.InvalidArgumentError(None, None, "no Cholesky factor")

    maximise(never, bound.hyperparameters.variables, 5)
    for one, other in zip(start, bound.hyperparameters.variables):
        np.testing.assert_array_equal(one, other)


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


@pytest.mark.slow
def test_a_thousand_fits_share_their_graphs(data):
    from gpflow_bsvm.engine import m_step as bound

    VEM(max_steps=2).run(make_model(data), data)
    graph = bound._of_bound
    traces = graph.num_traces
    for seed in range(3):
        VEM(max_steps=2).run(make_model(make_data(seed=seed)), make_data(seed=seed))
    assert graph.num_traces == traces > 0


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
