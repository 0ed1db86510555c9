"""The closed-form step of the sparse model is GPflow's natural gradient."""

import copy

import gpflow
import numpy as np
import pytest
import reference
import tensorflow as tf
from gpflow import inducing_variables as iv
from gpflow import kernels as k
from helpers import as_svgp, assert_same_state, make_model, randomise, state

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import Hinge, Probit

RATES = (0.1, 0.6, 1.0)


SE = k.SquaredExponential


def assert_step_is_gpflows(model: gb.models.BSVM, data, rates=RATES, tolerance=1e-10) -> None:
    for rate in rates:
        randomise(model)
        plain = as_svgp(model)
        gpflow.optimizers.NaturalGradient(rate).minimize(
            lambda plain=plain: plain.training_loss(data), [(plain.q_mu, plain.q_sqrt)]
        )
        before = state(model)
        model.natgrad_step(data, rate)
        assert_same_state(state(model), state(plain), tolerance)
        assert np.abs(state(model)[0] - before[0]).max() > 1e-3  # it is a step at all
        root = model.q_sqrt.numpy()
        np.testing.assert_array_equal(root, np.tril(root))


@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize("bound", ["augmented", "exact"])
def test_step_is_gpflows_natural_gradient(data, whiten, bound):
    model = make_model(data, likelihood=Hinge(1.5, bound), whiten=whiten)
    assert_step_is_gpflows(model, data)


@pytest.mark.slow
@pytest.mark.parametrize("whiten", [True, False])
def test_step_on_a_minibatch(data, whiten):
    model = make_model(data, whiten=whiten, num_data=1234)
    assert_step_is_gpflows(model, (data[0][:11], data[1][:11]), rates=(0.6,))


@pytest.mark.slow
@pytest.mark.parametrize(
    "mean_function",
    [gpflow.functions.Linear([[0.7], [-0.4]], [0.1]), gpflow.functions.Constant([0.8])],
    ids=["linear", "constant"],
)
@pytest.mark.parametrize("whiten", [True, False])
def test_step_with_a_mean_function(data, mean_function, whiten):
    model = make_model(data, mean_function=mean_function, whiten=whiten)
    assert_step_is_gpflows(model, data, rates=(0.6,))


def test_step_is_the_formula_of_its_docstring(data):
    """With a mean function: h takes (r_n - w_n m(x_n)) Phi_n."""
    X, Y = data
    mean = gpflow.functions.Linear([[0.7], [-0.4]], [0.1])
    model = make_model(data, mean_function=mean, num_data=2 * len(X))
    randomise(model)
    old, mu, v = model.natural(), *model.predict_f(X)
    w, r = (site.numpy()[:, 0] for site in model.likelihood.sites(X, mu, v, Y))
    Phi = np.linalg.solve(model.prior_factor()[0], model.kernel(X[:8], X)).T
    h, P = 2 * Phi.T @ (r - w * mean(X).numpy()[:, 0]), np.eye(8) + 2 * Phi.T * w @ Phi
    model.natgrad_step(data, 0.6)
    new = model.natural()
    # to q_mu and back goes through the inverse of P
    np.testing.assert_allclose(new.h[0], 0.4 * old.h[0] + 0.6 * h, rtol=1e-6)
    np.testing.assert_allclose(new.P[0], 0.4 * old.P[0] + 0.6 * P, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "likelihood",
    [Probit(), gpflow.likelihoods.StudentT(5.0), gpflow.likelihoods.Gaussian(0.5)],
    ids=["probit", "student", "gaussian"],
)
def test_step_with_another_likelihood(data, likelihood):
    # Student's t is not log-concave; with a scale of 5 no precision here is negative and clipped.
    assert_step_is_gpflows(make_model(data, likelihood=likelihood), data, rates=(0.6,))


def several_latents(name: str, Z: np.ndarray):
    """Kernel, inducing variable and number of latent functions."""
    three = [SE(1.0, 0.7), k.Matern32(2.0, 1.3), SE(0.5) + k.Linear(0.3)]
    points = [iv.InducingPoints(Z + shift) for shift in (0.0, 0.1, -0.2)]
    return {
        "one kernel": (SE(2.0), iv.InducingPoints(Z)),
        "shared, shared": (
            k.SharedIndependent(SE(2.0), 3),
            iv.SharedIndependentInducingVariables(points[0]),
        ),
        "separate, shared": (
            k.SeparateIndependent(three),
            iv.SharedIndependentInducingVariables(points[0]),
        ),
        "separate, separate": (
            k.SeparateIndependent(three),
            iv.SeparateIndependentInducingVariables(points),
        ),
        "shared, separate": (
            k.SharedIndependent(SE(2.0), 3),
            iv.SeparateIndependentInducingVariables(points),
        ),
    }[name]


LATENTS = pytest.mark.parametrize(
    "latents",
    [
        "one kernel",
        "shared, shared",
        "separate, shared",
        "separate, separate",
        "shared, separate",
    ],
)


def three_outputs(data):
    rng = np.random.default_rng(1)
    return data[0], np.hstack([data[1], (rng.random((len(data[0]), 2)) > 0.5).astype(float)])


@pytest.mark.drill
@pytest.mark.slow
@LATENTS
@pytest.mark.parametrize("whiten", [True, False])
def test_step_with_several_latent_functions(data, latents, whiten):
    kernel, inducing_variable = several_latents(latents, data[0][:6].copy())
    model = gb.models.BSVM(
        kernel,
        Hinge(),
        inducing_variable,
        num_latent_gps=3,
        whiten=whiten,
        num_data=100,
        mean_function=gpflow.functions.Constant([0.5, -0.5, 0.1]),
    )
    assert_step_is_gpflows(model, three_outputs(data), rates=(0.6,))


@pytest.mark.drill
@pytest.mark.slow
@LATENTS
def test_whole_fit_with_several_latent_functions(data, latents):
    kernel, inducing_variable = several_latents(latents, data[0][:6].copy())
    model = gb.models.BSVM(kernel, Hinge(), inducing_variable, num_latent_gps=3)
    data = three_outputs(data)
    history = gb.inference.CAVI(tol=1e-10).run(model, data)
    np.testing.assert_allclose(history.elbo[-1], model.elbo(data), rtol=1e-9)
    batched = gb.inference.SVI(batch_size=30, max_steps=7, learning_rate=0.5, record_every=3)
    batched.run(model, data)
    assert np.isfinite(model.elbo(data))


KERNELS = {
    "sum": lambda: SE(1.0) + k.Matern12(0.5, 2.0),
    "product": lambda: SE(1.5, 0.8) * k.Matern52(1.0, 3.0),
    "ard": lambda: SE(1.0, [0.5, 2.0]),
    "active_dims": lambda: SE(active_dims=[0]) + k.Matern32(active_dims=[1]) * k.Linear(),
    "slice": lambda: SE(active_dims=slice(0, 1)),
    "linear": lambda: k.Linear([0.5, 2.0]) + k.White(0.1),
    "matern32": lambda: k.Matern32(2.0),
    "rational quadratic": lambda: k.RationalQuadratic(alpha=0.7),
    "polynomial": lambda: k.Polynomial(degree=2, offset=0.5) + k.Constant(0.2),
    "periodic": lambda: k.Periodic(SE(1.0, 0.9), period=2.0),
    "cosine": lambda: k.Cosine() + k.Exponential(),
    "arccosine": lambda: k.ArcCosine(order=1),
    "change points": lambda: k.ChangePoints(
        [SE(active_dims=[0]), k.Matern12(active_dims=[0])], [0.0], 4.0
    ),
    "shared parameter": lambda: shared_lengthscale(),
}


def shared_lengthscale() -> k.Kernel:
    one, two = SE(1.0, 1.5), k.Matern32(0.4, 1.5)
    two.lengthscales = one.lengthscales
    return one + two


#: One for every way in which a kernel can be made of others, and see a part of the inputs.
SOME_KERNELS = {"ard", "active_dims", "slice", "periodic", "change points", "shared parameter"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[] if name in SOME_KERNELS else (pytest.mark.slow, pytest.mark.drill)
        )
        for name in KERNELS
    ],
)
def test_step_with_any_kernel(data, name):
    kernel = KERNELS[name]()
    X = data[0][:, :1] if name == "change points" else data[0]
    model = gb.models.BSVM(kernel, Hinge(), np.linspace(-1, 1, 4 * X.shape[1]).reshape(4, -1))
    assert_step_is_gpflows(model, (X, data[1]), rates=(0.6,))


@pytest.mark.slow
def test_step_with_images_and_patches(rng):
    X = rng.normal(size=(30, 16))
    data = X, (X[:, 5:6] > 0).astype(float)
    kernel = k.Convolutional(SE(), [4, 4], [2, 2], weights=rng.random(9))
    patches = kernel.get_patches(X).numpy().reshape(-1, 4)[:5].copy()
    model = gb.models.BSVM(kernel, Hinge(), iv.InducingPatches(patches))
    assert_step_is_gpflows(model, data, rates=(0.6,))
    history = gb.inference.CAVI().run(model, data)
    np.testing.assert_allclose(history.elbo[-1], model.elbo(data), rtol=1e-9)


def test_step_with_multiscale_inducing_variable(data):
    scales = np.linspace(0.1, 1.0, 10).reshape(5, 2)
    variable = iv.Multiscale(np.repeat(data[0][:1], 5, axis=0), scales)  # equal Z, other scales
    model = gb.models.BSVM(SE(), Hinge(), variable)
    assert_step_is_gpflows(model, data, rates=(0.6,))


@pytest.mark.slow
@pytest.mark.parametrize("whiten", [True, False])
def test_step_inside_a_users_graph(data, whiten):
    model = make_model(data, whiten=whiten, num_data=200)
    randomise(model)
    outside = copy.deepcopy(model)

    @tf.function
    def step(X, Y, rate):
        model.natgrad_step((X, Y), rate)
        return model.elbo((X, Y))

    for rate in RATES:
        elbo = step(*data, tf.constant(rate, tf.float64))
        outside.natgrad_step(data, rate)
        assert_same_state(state(model), state(outside), 1e-10)
        np.testing.assert_allclose(elbo, outside.elbo(data), rtol=1e-10)
        model.kernel.variance.assign(1.0 + rate)  # the graph follows the hyperparameters
        outside.kernel.variance.assign(1.0 + rate)


def test_step_is_the_dense_formula(data):
    X, Y = data
    model = make_model(data, likelihood=Hinge(1.5, "exact"), num_data=180)
    randomise(model)
    dense = reference.SparseModel(
        X,
        2 * Y[:, 0] - 1,
        X[:8],
        variance=2.0,
        lengthscale=1.0,
        penalty=1.5,
        bound="exact",
    )
    mean, covariance = state(model)
    expected = dense.step(mean[:, 0], covariance[0], 0.6, scale=3.0)
    model.natgrad_step(data, 0.6)
    # The reference inverts Kuu and P: their condition numbers times 1e-16.
    np.testing.assert_allclose(state(model)[0][:, 0], expected[0], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(state(model)[1][0], expected[1], rtol=1e-8, atol=1e-9)


@pytest.mark.slow
@pytest.mark.drill
def test_no_step_leaves_the_cone(data):
    model = make_model(data, kernel=SE(1e4), num_data=10_000)
    for n in range(50):
        start = 7 * n % 55
        model.natgrad_step((data[0][start : start + 5], data[1][start : start + 5]), 1.0)
        assert np.isfinite(model.elbo(data))
        assert (np.diagonal(model.q_sqrt.numpy()[0]) > 0).all()


@pytest.mark.parametrize("rate", [0.0, 1.5, tf.constant(1.5), tf.Variable(-0.5)])
def test_a_rate_outside_of_its_range(data, rate):
    with pytest.raises(ValueError, match=r"learning_rate must be in \(0, 1\]"):
        make_model(data).natgrad_step(data, rate)
