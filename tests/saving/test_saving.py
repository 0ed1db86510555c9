"""What is saved comes back to the last bit, and nothing that is read is executed."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import kernels as k
from helpers import ard, log_normal, make_model, randomise
from what_is_saved import (
    Scaled,
    of_a_kernel_of_ones_own,
    unwhitened,
)

import gpflow_bsvm as gb
from gpflow_bsvm import likelihoods as lik
from gpflow_bsvm.engine.projection import compiled_project
from gpflow_bsvm.engine.statistics import compiled_marginals
from gpflow_bsvm.engine.structure import look_into
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.models.linear import WeightKernel
from gpflow_bsvm.papers import gold2003, seeger2000, wenzel2017
from gpflow_bsvm.saving import objects


def assert_same(one, two, X):
    """Predictions, parameters, what is trainable of them and their priors: the same."""
    f, other = one.predict_f(X), two.predict_f(X)
    np.testing.assert_array_equal(f, other)
    y = (model.likelihood.predict_mean_and_var(X, *f) for model in (one, two))
    np.testing.assert_array_equal(*y)
    ours, theirs = (gpflow.utilities.parameter_dict(model) for model in (one, two))
    assert ours.keys() == theirs.keys()
    for name, parameter in ours.items():
        other = theirs[name]
        np.testing.assert_array_equal(parameter, other)
        assert parameter.trainable == other.trainable
        if isinstance(parameter, gpflow.Parameter):
            assert look_into((parameter.prior,)).key == look_into((other.prior,)).key
            assert parameter.prior_on == other.prior_on


KERNELS = {
    "squared exponential": lambda: ard(),
    "matern12": lambda: k.Matern12(2.0, active_dims=[1]),
    "matern32": lambda: k.Matern32(2.0, [0.5, 2.0], active_dims=slice(0, 2)),
    "matern52": lambda: k.Matern52(),
    "exponential": lambda: k.Exponential(lengthscales=2.0),
    "cosine": lambda: k.Cosine() + k.White(0.1),
    "rational quadratic": lambda: k.RationalQuadratic(alpha=0.3, lengthscales=[1.0, 3.0]),
    "linear": lambda: k.Linear([1.0, 2.0]) + k.Constant(0.3),
    "polynomial": lambda: k.Polynomial(2.0, offset=0.7),
    "periodic": lambda: k.Periodic(k.Matern32(active_dims=[0]), period=[1.7]),
    "arc cosine": lambda: k.ArcCosine(1, weight_variances=[1.0, 2.0]),
    "change points": lambda: (
        k.ChangePoints([k.Matern12(), k.Matern32()], [0.1], 3.0) * k.Matern12()
    ),
    "nested": lambda: (
        k.Matern12(active_dims=[0]) * (k.Matern32(active_dims=[1]) + k.Constant(0.5)) + k.White(0.1)
    ),
    "weights": lambda: WeightKernel(2, [1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(rows, again, name):
    X, _ = rows if name != "change points" else (rows[0][:, :1], None)
    model = make_model((X, None), kernel=KERNELS[name](), num_inducing=5)
    randomise(model)
    assert_same(model, again(model), X)


def points(X, number):
    return [gpflow.inducing_variables.InducingPoints(X[n : n + 5].copy()) for n in range(number)]


def shared_points(X):
    return gpflow.inducing_variables.SharedIndependentInducingVariables(points(X, 1)[0])


def separate_points(X):
    return gpflow.inducing_variables.SeparateIndependentInducingVariables(points(X, 3))


SHARED = lambda: k.SharedIndependent(k.Matern32(), output_dim=3), shared_points
SEPARATE = (
    lambda: k.SeparateIndependent([k.Matern12(), k.Matern32(), k.Matern52()]),
    separate_points,
)


@pytest.mark.parametrize(
    ("kernel", "of_points"),
    [SHARED, pytest.param(*SEPARATE, marks=[pytest.mark.slow, pytest.mark.drill])],
)
def test_several_outputs(rows, again, kernel, of_points):
    model = gb.models.BSVM(kernel(), lik.OneVsRest(3), of_points(rows[0]), num_latent_gps=3)
    randomise(model)
    other = again(model)
    assert_same(model, other, rows[0][:3])
    assert type(other.inducing_variable) is type(model.inducing_variable)


LIKELIHOODS = {
    "numbers": lambda: lik.EpsilonInsensitive(3.0, 0.2, "augmented"),
    "quantiles": lambda: lik.Quantile((0.2, 0.8), scale=0.3),
    "quantiles of their own": lambda: lik.Quantile((0.2, 0.8), tied=False),
    "ordered": lambda: lik.Ordinal(4, thresholds=[-1.0, 0.5, 3.0]),
    "one class": lambda: lik.OneClass(3.0),
    "hinge": lambda: lik.Hinge(3.0, "augmented", normalizer=True),
    "wenzel": lambda: wenzel2017.Hinge(),
    "squared": lambda: gold2003.SquaredHinge(0.7, normalizer=True),
    "normalized": lambda: seeger2000.NormalizedHinge(1.5),
    "probit": lambda: lik.Probit(quadrature=gpflow.quadrature.NDiagGHQuadrature(1, 7)),
    "logistic": lambda: lik.Logistic(),
    "levels": lambda: lik.LevelHinge(2.0, levels=lik.location_spread(5, 0.3)),
    "link of levels": lambda: lik.LevelHinge(link="stationary"),
    "own levels": lambda: lik.LevelHinge(
        levels=lik.Levels([0.2, 0.6], [[1.0, 0.5], [0.0, 1.0]], [0, 0.1])
    ),
    "crammer singer": lambda: lik.CrammerSinger(3, 4.0, "wistuba2018"),
    "one vs rest": lambda: lik.OneVsRest(3, bound="augmented", normalizer=True),
    "levels of classes": lambda: lik.OneVsRestLevelHinge(
        3, levels=lik.Levels([0.3, 0.7], np.eye(2), [0.0, 0.0])
    ),
    "bernoulli": lambda: gpflow.likelihoods.Bernoulli(tf.sigmoid),
    "multiclass": lambda: gpflow.likelihoods.MultiClass(3),
}
g = gpflow.likelihoods
OTHERS = {
    "gaussian": lambda: g.Gaussian(0.3),
    "by its scale": lambda: g.Gaussian(scale=0.3, variance_lower_bound=1e-3),
    "of x": lambda: g.Gaussian(gpflow.functions.Linear([[1.0], [0.3]], 0.2)),
    "student": lambda: g.StudentT(0.3, df=4.0),
    "poisson": lambda: g.Poisson(binsize=0.5),
    "exponential": lambda: g.Exponential(tf.nn.softplus),
    "gamma": lambda: g.Gamma(shape=2.0),
    "beta": lambda: g.Beta(scale=2.0),
    "ordinal": lambda: g.Ordinal(np.array([0.0, 1.0])),
    "switched": lambda: g.SwitchedLikelihood([g.Gaussian(0.3), g.StudentT()]),
}


def of_gpflow(rows, likelihood, **options):
    points = gpflow.inducing_variables.InducingPoints(rows[0][:5].copy())
    return gpflow.models.SVGP(ard(), likelihood, points, **options)


@pytest.mark.parametrize("name", OTHERS)
def test_likelihoods_of_gpflow(rows, again, name):
    (X, Y), model = rows, of_gpflow(rows, OTHERS[name]())
    Y = np.hstack([np.abs(Y) * 0.3 + 0.2, np.zeros_like(Y)][: 2 if name == "switched" else 1])
    other = again(model)
    np.testing.assert_array_equal(model.elbo((X, Y)), other.elbo((X, Y)))
    assert look_into((model.likelihood,)).key == look_into((other.likelihood,)).key


@pytest.mark.parametrize("options", [{}, {"q_diag": True, "whiten": False, "num_data": 100}])
def test_models_of_gpflow(rows, again, options):
    model = of_gpflow(rows, lik.Hinge(2.0), **options)
    model.q_mu.assign(np.arange(5.0)[:, None])
    other = again(model)
    assert type(other) is gpflow.models.SVGP
    assert_same(model, other, rows[0])
    np.testing.assert_array_equal(model.elbo(rows), other.elbo(rows))


def test_patches(again):
    X = np.random.default_rng(0).normal(size=(6, 16))
    patches = gpflow.inducing_variables.InducingPatches(X[:3, :4].copy())
    kernel = k.Convolutional(k.Matern32(), [4, 4], [2, 2], weights=np.arange(9.0))
    model = gpflow.models.SVGP(kernel, g.Bernoulli(), patches)
    assert_same(model, again(model), X)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_likelihoods(rows, again, name):
    X, _ = rows
    model = make_model(
        rows,
        likelihood=LIKELIHOODS[name](),
        num_latent_gps=LIKELIHOODS[name]().latent_dim or 1,
        num_inducing=5,
    )
    randomise(model)
    link = getattr(model.likelihood, "link_parameters", {})
    for number, parameter in enumerate(link.values()):
        parameter.assign(1.3 + number)
    other = again(model)
    assert_same(model, other, X)
    assert look_into((model.likelihood,)).key == look_into((other.likelihood,)).key


def linear(rows):
    return gb.models.LinearBSVM(2, lik.Hinge(), [2.0, 1.0, 3.0])


def linear_without_bias(rows):
    return gb.models.LinearBSVM(2, lik.CrammerSinger(3), [1.0, 2.0], bias=False, num_data=24)


def batch(rows):
    return gb.models.BatchBSVM(rows, ard(), lik.Hinge(), mean_function=gpflow.functions.Constant(1))


@pytest.mark.parametrize("make", [unwhitened, linear, linear_without_bias, batch])
def test_models(rows, again, make):
    model = make(rows)
    randomise(model)
    model._jitter = 1e-4
    other = again(model)
    assert_same(model, other, rows[0])
    assert type(other) is type(model)
    for name in ("whiten", "num_data", "_jitter", "num_latent_gps"):
        assert getattr(other, name) == getattr(model, name)
    if make is batch:
        np.testing.assert_array_equal(model.elbo(), other.elbo())


@pytest.mark.slow
def test_dual_model(rows, again):
    model = wenzel2017.DualBSVM(rows, ard(), lik.Hinge(bound="augmented"), rows[0][:5].copy())
    model.update_sites(1)
    other = again(model)
    assert_same(model, other, rows[0])
    assert isinstance(other.sites, lik.Sites)
    np.testing.assert_array_equal(model.sites.w, other.sites.w)
    assert model.update_sites(1) == other.update_sites(1)


f = gpflow.functions
MEANS = {
    "zero": lambda: f.Zero(),
    "sum": lambda: f.Linear([[1.0], [0.3]], 0.2) + f.Constant(0.5),
    "product": lambda: f.Constant(2.0) * f.Polynomial(2, 2, 1, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
}


@pytest.mark.parametrize("name", MEANS)
def test_mean_functions(rows, again, name):
    model = make_model(rows, mean_function=MEANS[name](), num_inducing=5)
    assert_same(model, again(model), rows[0])


def test_a_switched_mean_function(again):
    mean = f.SwitchedMeanFunction([f.Constant(1.0), f.Linear([[1.0], [0.3]])])
    X = np.array([[0.1, 0.2, 0.0], [0.3, 0.4, 1.0]])
    np.testing.assert_array_equal(again(mean)(X), mean(X))


def test_parameters_with_all_that_they_know(rows, again):
    first, second = ard(), k.Matern32()
    d, b = tfp.distributions, tfp.bijectors
    first.variance = gpflow.Parameter(0.4, transform=b.Sigmoid(np.float64(0), np.float64(2)))
    first.lengthscales = gpflow.Parameter(
        [1.0, 2.0],
        transform=b.Chain([b.Shift(np.float64(0.1)), b.Exp()]),
        prior=d.Independent(d.Gamma(np.full(2, 2.0), np.ones(2)), 1),
        prior_on="unconstrained",
        trainable=False,
    )
    second.variance.prior = log_normal(2.0, 0.5)
    second.lengthscales = first.variance  # tied
    third = k.Constant()
    third.variance.unconstrained_variable.assign(-800.0)  # softplus of which is 0
    model = make_model(rows, kernel=first + second + third, num_inducing=5)
    other = again(model)
    assert_same(model, other, rows[0])
    assert other.kernel.kernels[1].lengthscales is other.kernel.kernels[0].variance
    assert look_into((model,)).key == look_into((other,)).key
    np.testing.assert_array_equal(
        [p.log_prior_density() for p in model.trainable_parameters],
        [p.log_prior_density() for p in other.trainable_parameters],
    )


def test_inducing_points_of_any_number(rows, again):
    Z = tf.Variable(rows[0][:5], shape=tf.TensorShape([None, 2]), trainable=False)
    kernel = gpflow.inducing_variables.InducingPoints(Z)
    other = again(kernel).Z
    assert other.shape.as_list() == [None, 2]
    assert not other.trainable
    np.testing.assert_array_equal(other, Z)


def test_training_goes_on_as_it_would_have(rows, again):
    model = make_model(rows)
    CAVI(max_steps=2).run(model, rows)
    other = again(model)
    traces = compiled_project.num_traces, compiled_marginals.num_traces
    for one in (model, other):
        CAVI(max_steps=1).run(one, rows)
    np.testing.assert_allclose(other.q_mu, model.q_mu, rtol=1e-12)
    np.testing.assert_allclose(other.q_sqrt, model.q_sqrt, rtol=0, atol=1e-12)
    assert (compiled_project.num_traces, compiled_marginals.num_traces) == traces


def test_single_precision(again):
    gpflow.config.set_default_float(np.float32)
    kernel = again(k.Matern32(0.3))
    assert kernel.variance.dtype == np.float32
    assert kernel.variance.numpy() == k.Matern32(0.3).variance.numpy()


# --- a kernel of one's own ------------------------------------------------------------------


@pytest.fixture
def forget(monkeypatch):
    monkeypatch.setattr(objects, "_registered", {})


def test_a_kernel_that_is_made_known(rows, path, forget):
    scaled = of_a_kernel_of_ones_own(rows)
    gb.saving.register(Scaled)
    gb.save(scaled, path)
    assert_same(scaled, gb.load(path), rows[0])
    objects._registered.clear()
    with pytest.raises(ValueError, match=r"model\.bsvm.*Scaled.*register"):
        gb.load(path)
