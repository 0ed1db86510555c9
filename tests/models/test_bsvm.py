"""The sparse model: its step against GPflow's, and its refusals."""

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


# --- the step ------------------------------------------------------------------------------------


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
        pytest.param(name, marks=[] if name in SOME_KERNELS else pytest.mark.slow)
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


# --- natural parameters --------------------------------------------------------------------------


@pytest.mark.parametrize("whiten", [True, False])
def test_assigning_what_natural_gives_changes_nothing(data, whiten):
    model = make_model(data, whiten=whiten)
    randomise(model)
    before = state(model)
    model.assign_natural(model.natural())
    assert_same_state(state(model), before, 1e-9)


def test_whitening_is_only_another_parametrisation(data):
    white, plain = make_model(data), make_model(data, whiten=False)
    plain.assign_natural(white.natural())  # both start from the prior
    for model in (white, plain):
        gb.inference.CAVI(max_steps=5, tol=0).run(model, data)
    np.testing.assert_allclose(white.elbo(data), plain.elbo(data), rtol=1e-9)
    for one, two in zip(white.predict_f(data[0]), plain.predict_f(data[0])):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)


# --- refusals ------------------------------------------------------------------------------------


def test_diagonal_q_is_refused(data):
    with pytest.raises(ValueError, match="full q_sqrt"):
        make_model(data, q_diag=True)


@pytest.mark.parametrize("name", ["coregionalised", "plain points", "shared coregion"])
def test_mixed_latent_functions_are_refused(data, name):
    Z = data[0][:5].copy()
    W = np.ones((3, 2))
    kernel, variable = {
        "coregionalised": (
            k.LinearCoregionalization([SE(), SE()], W),
            iv.SharedIndependentInducingVariables(iv.InducingPoints(Z)),
        ),
        "plain points": (k.SharedIndependent(SE(), 3), iv.InducingPoints(Z)),
        "shared coregion": (
            k.LinearCoregionalization([SE(), SE()], W),
            iv.SeparateIndependentInducingVariables(
                [iv.InducingPoints(Z), iv.InducingPoints(Z + 1)]
            ),
        ),
    }[name]
    with pytest.raises(ValueError, match="independent latent functions"):
        gb.models.BSVM(kernel, Hinge(), variable, num_latent_gps=2)


@pytest.mark.slow
def test_duplicate_inducing_points_get_a_warning_and_say_nothing(data):
    Z = np.concatenate([data[0][:4], data[0][2:3]])
    for variable in (
        Z,
        iv.InducingPoints(Z),
        iv.SharedIndependentInducingVariables(iv.InducingPoints(Z)),
    ):
        kernel = SE() if not isinstance(variable, iv.SharedIndependentInducingVariables) else None
        with pytest.warns(UserWarning, match="row 4 equals row 2"):
            model = gb.models.BSVM(
                kernel or k.SharedIndependent(SE(), 1), Hinge(), variable, num_latent_gps=1
            )
        gb.fit(model, data)
        without = gb.models.BSVM(SE(), Hinge(), data[0][:4].copy())
        gb.fit(without, data)
        for one, two in zip(model.predict_f(data[0]), without.predict_f(data[0])):
            np.testing.assert_allclose(one, two, atol=1e-4)  # the jitter, 1e-6 of variance 1


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_inputs_of_another_dtype_are_refused_in_predictions(data, dtype):
    model = make_model(data)
    X = (10 * data[0]).astype(dtype)
    for predict in (model.predict_f, model.predict_y):
        with pytest.raises(ValueError, match=r"X has dtype .* use .*to_default_float"):
            predict(X)


def test_the_number_of_latent_functions_is_the_likelihoods_or_the_kernels(data):
    with pytest.raises(ValueError, match="needs num_latent_gps=3, got 1"):
        make_model(data, likelihood=gpflow.likelihoods.MultiClass(3), num_latent_gps=1)
    for how, number in (
        ({"likelihood": gpflow.likelihoods.MultiClass(3)}, 3),
        ({"likelihood": gb.likelihoods.LevelHinge()}, 2),
        ({}, 1),
    ):
        assert make_model(data, **how).num_latent_gps == number
    points = gpflow.inducing_variables.InducingPoints(data[0][:4])
    points = gpflow.inducing_variables.SharedIndependentInducingVariables(points)
    kernel = gpflow.kernels.SharedIndependent(SE(1.0), 2)
    assert gb.models.BSVM(kernel, Hinge(), points).num_latent_gps == 2


@pytest.mark.parametrize("num_data", [2.5, "x", 0, np.inf, [3, 4]])
def test_num_data_is_a_number_of_rows(data, num_data):
    with pytest.raises(ValueError, match="num_data must be a positive whole number or None, got"):
        make_model(data, num_data=num_data)


@pytest.mark.parametrize(
    ("likelihood", "wrong", "message"),
    [
        (Hinge(), 5.0, r"binary labels must be in \{0, 1\} or in \{-1, \+1\}, got"),
        (gb.likelihoods.CrammerSinger(2), 2.0, r"class labels must be integers in 0..1, got 2.0"),
        (gpflow.likelihoods.MultiClass(2), 0.5, r"class labels must be integers in 0..1, got 0.5"),
        (gpflow.likelihoods.Softmax(2), 2.0, r"class labels must be integers in 0..1, got 2.0"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_labels_that_the_likelihood_does_not_know_have_a_reason(data, likelihood, wrong, message):
    """Without one they are NaN, or with GPflow's `MultiClass` a number."""
    X, Y = data
    model = make_model(data, likelihood=likelihood)
    bad = (X, np.where(np.arange(len(Y))[:, None] == 3, wrong, Y > 0))
    for ask in (
        model.elbo,
        model.training_loss,
        model.predict_log_density,
        lambda rows: gb.prediction.predict_log_density(model, rows),
        lambda rows: model.natgrad_step(rows, 0.5),
    ):
        with pytest.raises(ValueError, match=message):
            ask(bad)


def test_softmax_takes_labels_of_any_dtype(data):
    """Its expectations are by random numbers, the same for each dtype here."""
    X, Y = data[0], (data[1] > 0).astype(int)
    found = []
    for labels in (Y, Y.astype(float), Y.astype(np.int32)):
        model = make_model(data, likelihood=gpflow.likelihoods.Softmax(2))
        tf.random.set_seed(1)
        model.natgrad_step((X, labels), 0.5)
        found.append([model.q_mu.numpy(), model.predict_log_density((X, labels)).numpy()])
        np.testing.assert_allclose(
            gb.prediction.predict_log_density(model, (X, labels)).shape, (len(X),)
        )
        inside = tf.function(lambda rows, model=model: model.elbo(rows))
        assert np.isfinite(inside((X, labels)))
    assert np.ptp([q for q, _ in found], axis=0).max() == 0


@pytest.mark.parametrize("part", [Hinge, gpflow.likelihoods.Gaussian])
def test_a_switched_likelihood(data, part):
    X, Y = data
    which = (np.arange(len(X)) % 2)[:, None]
    rows = (X, np.hstack([Y, which]))
    plain, same = (
        make_model(data, likelihood=like)
        for like in (part(), gpflow.likelihoods.SwitchedLikelihood([part(), part()]))
    )
    plain.natgrad_step(data, 0.6)
    same.natgrad_step(rows, 0.6)
    np.testing.assert_allclose(same.q_mu, plain.q_mu, rtol=1e-9, atol=1e-9)
    likelihood = gpflow.likelihoods.SwitchedLikelihood([part(), part(4.0)])
    model = make_model(data, likelihood=likelihood)
    history = gb.inference.CAVI(max_steps=2).run(model, rows)
    np.testing.assert_allclose(history.elbo[-1], as_svgp(model).elbo(rows), rtol=1e-9)
    found = gb.prediction.predict_log_density(model, rows)
    np.testing.assert_allclose(found, as_svgp(model).predict_log_density(rows), rtol=1e-8)
    batch = gb.models.BatchBSVM(rows, SE(2.0), likelihood)
    assert batch.num_latent_gps == 1
    with pytest.raises(ValueError, match=r"Y's last column, must be integers in 0..1, got 2"):
        batch.elbo((X, np.hstack([Y, which + 1])))
    with pytest.raises(ValueError, match=r"then the number of a likelihood \(shape \[N, 2\]\)"):
        make_model(data, likelihood=likelihood).natgrad_step(data, 0.5)
    with pytest.raises(ValueError, match="which are no classes: take the column"):
        gb.prediction.variation_ratio(batch, X)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.01, np.nan, np.float32(2.0), 2])
def test_bad_rates_are_refused(data, rate):
    model = make_model(data)
    before = state(model)
    with pytest.raises(ValueError, match="learning_rate must be in"):
        model.natgrad_step(data, rate)
    assert_same_state(state(model), before, 0)


def test_a_frozen_model_predicts_and_is_not_fitted(data):
    model = make_model(data)
    frozen = gpflow.utilities.freeze(model)
    np.testing.assert_array_equal(frozen.predict_y(data[0])[0], model.predict_y(data[0])[0])
    for fit in (gb.fit, lambda model, data: model.natgrad_step(data, 0.5)):
        with pytest.raises(TypeError, match=r"was frozen \(gpflow.utilities.freeze\)"):
            fit(frozen, data)
