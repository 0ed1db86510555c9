"""Likelihoods: bounds against integrals, links, labels, predictions."""

import gpflow
import numpy as np
import pytest
import reference
import tensorflow as tf
from gpflow.likelihoods import ScalarLikelihood
from helpers import expectations, grid, in_a_graph, make_data, make_model, minimise, state
from scipy.stats import norm

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import Hinge, Probit, signs
from gpflow_bsvm.likelihoods.classes import normal_cdf, normal_log_cdf, normal_pdf
from gpflow_bsvm.papers import wenzel2017

PENALTIES = (0.3, 1.0, 2.0, 7.5)


# --- the pseudo-likelihood and its bounds --------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("b", [-4.0, -0.5, -1e-3, 0.0, 1e-3, 0.5, 4.0])
def test_augmentation_integral_is_the_hinge(b, penalty):
    # y = 1, f = 1 - b
    log_prob = Hinge(penalty).log_prob(None, np.array([[1 - b]]), np.ones((1, 1))).numpy().item()
    np.testing.assert_allclose(
        reference.augmentation_integral(b, penalty), np.exp(log_prob), rtol=1e-10
    )


@pytest.mark.parametrize("penalty", PENALTIES)
def test_log_prob_is_the_hinge_loss(penalty):
    f, y = np.linspace(-4, 4, 17)[:, None], np.tile([[1.0], [-1.0]], (9, 1))[:17]
    np.testing.assert_allclose(
        Hinge(penalty).log_prob(None, f, y), reference.hinge_log(y, f, penalty)[:, 0], rtol=1e-14
    )


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("mu, v, y", [(0.3, 0.5, 1.0), (-1.2, 2.0, 1.0), (2.5, 0.1, -1.0)])
def test_augmented_bound_is_the_bound_maximised_over_the_local_variable(mu, v, y, penalty):
    bound, alpha = reference.augmented_bound_by_maximisation(mu, v, y, penalty)
    likelihood = Hinge(penalty, "augmented")
    np.testing.assert_allclose(
        expectations(likelihood, [[mu]], [[v]], [[y]]).item(), bound, rtol=1e-9
    )
    # An argmax is known to the square root of the accuracy of the maximum.
    found = likelihood.moments(*(np.array([[value]]) for value in (mu, v, y))).square
    np.testing.assert_allclose(found, [[alpha]], rtol=1e-4)


@pytest.mark.slow
def test_exact_expectation_is_the_integral():
    mu, v, y = grid()
    expected = np.array([reference.hinge_expectation(*row, 1.0) for row in np.hstack([mu, v, y])])
    for penalty in PENALTIES:
        found = expectations(Hinge(penalty, "exact"), mu, v, y)
        np.testing.assert_allclose(found, penalty * expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_augmented_is_below_exact_by_a_bounded_gap(penalty):
    mu, v, y = grid()
    augmented = expectations(Hinge(penalty, "augmented"), mu, v, y)
    gap = expectations(Hinge(penalty, "exact"), mu, v, y) - augmented
    rounding = 1e-14 * np.abs(augmented)
    assert (gap >= -rounding).all()
    assert (gap <= 0.125 * penalty * np.sqrt(v[:, 0]) + rounding).all()
    assert gap.max() > 0.1 * penalty  # the two bounds are not the same thing


@pytest.mark.parametrize("bound", ["augmented", "exact"])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_without_variance_the_expectation_is_the_loss(bound, penalty):
    f, y = np.linspace(-4, 4, 33)[:, None], np.ones((33, 1))  # f = 1, the margin, is among them
    found = expectations(Hinge(penalty, bound), f, np.zeros_like(f), y)
    # sqrt(variance floor) = 1e-7 remains on the margin itself.
    np.testing.assert_allclose(found, reference.hinge_log(y, f, penalty)[:, 0], atol=1e-7 * penalty)


@pytest.mark.parametrize("bound", ["augmented", "exact"])
@pytest.mark.parametrize("variance", [0.0, 1e-300, 1e-30])
def test_value_and_gradient_are_finite_on_the_margin(bound, variance):
    likelihood = Hinge(bound=bound)
    Fmu = tf.constant([[1.0], [-1.0], [1.0], [0.0]], tf.float64)
    Fvar = tf.fill([4, 1], tf.constant(variance, tf.float64))
    Y = np.array([[1.0], [0.0], [0.0], [1.0]])  # two rows on the margin, two off it
    with tf.GradientTape() as tape:
        tape.watch((Fmu, Fvar))
        value = likelihood.variational_expectations(None, Fmu, Fvar, Y)
    gradients = tape.gradient(value, (Fmu, Fvar))
    for tensor in (value, *gradients, *likelihood.sites(None, Fmu, Fvar, Y)):
        assert np.isfinite(tensor.numpy()).all()


def test_private_quadrature_of_the_base_class_agrees_off_the_kink():
    # The public method is the closed form itself: call the base class' quadrature. Far from the
    # kink the loss is linear, which Gauss-Hermite integrates exactly; on the kink it is 1e-2 off.
    likelihood = Hinge(penalty=3.0, bound="exact")
    mu, v = np.array([[-4.0], [6.0], [1.0]]), np.array([[0.1], [0.1], [0.5]])
    Y = np.ones((3, 1))
    X = np.zeros((3, 1))
    quadrature = ScalarLikelihood._variational_expectations(likelihood, X, mu, v, Y).numpy()
    closed = expectations(likelihood, mu, v, Y)
    np.testing.assert_allclose(quadrature[:2], closed[:2], rtol=1e-10, atol=1e-10)
    assert abs(quadrature[2] - closed[2]) > 1e-3  # this comparison can fail


# --- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "likelihood",
    [Hinge(bound="augmented"), Hinge(), Probit()],
    ids=["augmented", "exact", "probit"],
)
def test_both_encodings_of_labels_give_the_same(likelihood, rng):
    mu, v, X = rng.normal(size=(20, 1)), rng.gamma(1.0, size=(20, 1)), np.zeros((20, 1))
    zero_one = (rng.random((20, 1)) > 0.5).astype(float)
    plus_minus = 2 * zero_one - 1
    for method, args in (
        ("log_prob", (X, mu)),
        ("variational_expectations", (X, mu, v)),
        ("predict_log_density", (X, mu, v)),
    ):
        one, two, three = (
            getattr(likelihood, method)(*args, Y).numpy()
            for Y in (zero_one, plus_minus, zero_one.astype(int))
        )
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)
    for one, two in zip(
        gb.likelihoods.sites(likelihood, X, mu, v, zero_one),
        gb.likelihoods.sites(likelihood, X, mu, v, plus_minus),
    ):
        np.testing.assert_array_equal(one, two)


def test_signs():
    for no in (0.0, -1.0):
        np.testing.assert_array_equal(signs([[no], [1.0]], np.zeros((2, 1))), [[-1.0], [1.0]])
    np.testing.assert_array_equal(signs([[True], [False]], np.zeros((2, 1))), [[1.0], [-1.0]])


@pytest.mark.slow
@pytest.mark.parametrize(
    "likelihood",
    [Hinge(bound="augmented"), Hinge(), Probit()],
    ids=["augmented", "exact", "probit"],
)
def test_wrong_labels_are_nan_in_a_graph_never_a_number(likelihood):
    @in_a_graph
    def everything(F, Fvar, Y):
        return (
            likelihood.log_prob(None, F, Y),
            likelihood.variational_expectations(None, F, Fvar, Y),
            likelihood.predict_log_density(None, F, Fvar, Y),
            gb.likelihoods.sites(likelihood, None, F, Fvar, Y)[1][:, 0],
        )

    F, Fvar = np.array([[0.3], [50.0]]), np.ones((2, 1))
    for label in (2.0, 0.5, -2.0, np.nan, np.inf):
        for values in everything(F, Fvar, np.array([[label], [1.0]])):
            assert np.isnan(values.numpy()[0]), label
            assert np.isfinite(values.numpy()[1]), label


LABELLED = {
    "binary": (Hinge(), [[-1.0], [0.0], [1.0]], "binary labels must be in"),
    "others": (Probit(), [[1.0], [2.0], [1.0]], "binary labels must be in"),
    "between": (gb.likelihoods.LevelHinge(), [[0.5], [1.0], [0.0]], "binary labels must be in"),
    "not a number": (Hinge(), [[np.nan], [1.0], [0.0]], "binary labels must be in"),
    "classes": (gb.likelihoods.OneVsRest(3), [[0.0], [1.0], [3.0]], r"integers in 0\.\.2, got 3"),
    "ordered": (gb.likelihoods.Ordinal(3), [[0.0], [1.0], [0.5]], r"integers in 0\.\.2, got 0.5"),
    "numbers": (gb.likelihoods.EpsilonInsensitive(), [[0.0], [1.0], [np.nan]], "Y holds NaN"),
    "one label": (Hinge(), [[1.0]], "X has 3 rows and Y has 1; they must be equal"),
    "one number": (gb.likelihoods.Quantile([0.5], tied=False), [[1.0]], "X has 3 rows and Y has 1"),
}


@pytest.mark.parametrize("name", LABELLED)
def test_a_plain_svgp_refuses_wrong_labels(name):
    likelihood, Y, match = LABELLED[name]
    kernel, X, number = gpflow.kernels.Matern12(), np.eye(3), likelihood.latent_dim or 1
    model = gpflow.models.SVGP(kernel, likelihood, X, num_latent_gps=number)
    with pytest.raises(ValueError, match=match):
        model.elbo((X, np.array(Y)))


# --- links and predictions -----------------------------------------------------------------------


def test_normal_functions_against_scipy():
    x = np.concatenate([-np.logspace(3, -3, 60), [0.0], np.logspace(-3, 3, 60)])
    np.testing.assert_allclose(normal_log_cdf(x), norm.logcdf(x), rtol=1e-12, atol=1e-15)
    left = x[x < 0]
    np.testing.assert_allclose(normal_cdf(left), norm.cdf(left), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(normal_cdf(x), norm.cdf(x), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(normal_pdf(x), norm.pdf(x), rtol=1e-12, atol=1e-300)


def test_probit_log_prob_and_its_gradient_in_the_tails():
    f = np.array([-1e3, -100.0, -38.0, -10.0, -1.0, 0.0, 3.0, 30.0])[:, None]
    F = tf.constant(f)
    with tf.GradientTape() as tape:
        tape.watch(F)
        value = Probit().log_prob(None, F, np.ones_like(f))
    np.testing.assert_allclose(value, norm.logcdf(f[:, 0]), rtol=1e-12, atol=1e-15)
    slope = np.exp(norm.logpdf(f) - norm.logcdf(f))
    np.testing.assert_allclose(tape.gradient(value, F), slope, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("likelihood", [Hinge(), Probit()], ids=["hinge", "probit"])
def test_prediction_is_the_link_averaged_over_f(likelihood):
    mu, v, _ = grid()
    mu, v = mu[v[:, 0] <= 25], v[v[:, 0] <= 25]
    p, variance = likelihood.predict_mean_and_var(None, mu, v)
    # An erfc with an argument above 1 over a wide interval: 1e-9 is what 200 nodes give.
    expected = [[reference.normal_expectation(norm.cdf, m, s2)] for m, s2 in zip(mu[:, 0], v[:, 0])]
    np.testing.assert_allclose(p, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variance, p * (1 - p), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("likelihood", [Hinge(), Probit(), wenzel2017.Hinge()])
def test_link_formulas_and_log_density(likelihood):
    mu, v, y = grid()
    scale = 1 + v if isinstance(likelihood, wenzel2017.Hinge) else np.sqrt(1 + v)
    p, _ = likelihood.predict_mean_and_var(None, mu, v)
    np.testing.assert_allclose(p, norm.cdf(mu / scale), rtol=1e-12, atol=1e-300)

    density = np.exp(likelihood.predict_log_density(None, mu, v, y))
    both = density + np.exp(likelihood.predict_log_density(None, mu, v, -y))
    np.testing.assert_allclose(both, 1, rtol=1e-14)
    p_of_label = np.where(y == 1, p, norm.cdf(-mu / scale))[:, 0]
    np.testing.assert_allclose(density, p_of_label, rtol=1e-12, atol=1e-300)


def test_conditional_mean_and_variance():
    f = np.linspace(-5, 5, 11)[:, None]
    mean, variance = Hinge().conditional_mean(None, f), Hinge().conditional_variance(None, f)
    np.testing.assert_allclose(mean, norm.cdf(f), rtol=1e-13)
    np.testing.assert_allclose(variance, norm.cdf(f) * norm.cdf(-f), rtol=1e-12, atol=1e-15)


def test_several_columns_add_up(rng):
    mu, v = rng.normal(size=(5, 3)), rng.gamma(1.0, size=(5, 3))
    Y = (rng.random((5, 3)) > 0.5).astype(float)
    for likelihood in (Hinge(bound="augmented"), Hinge(), Probit()):
        for name in ("variational_expectations", "predict_log_density"):
            method = getattr(likelihood, name)
            single = sum(method(None, mu[:, [i]], v[:, [i]], Y[:, [i]]).numpy() for i in range(3))
            np.testing.assert_allclose(method(None, mu, v, Y), single, rtol=1e-13)


@pytest.mark.parametrize(
    "kwargs, match",
    [
        ({"bound": "tight"}, "bound must be one of"),
        ({"penalty": 0.0}, "penalty must be a positive, finite number"),
        ({"penalty": -1.0}, "penalty must be a positive, finite number"),
        ({"penalty": np.nan}, "penalty must be a positive, finite number"),
        ({"penalty": np.inf}, "penalty must be a positive, finite number"),
    ],
)
def test_bad_options_are_refused(kwargs, match):
    with pytest.raises(ValueError, match=match):
        Hinge(**kwargs)


def test_penalty_is_a_parameter_that_is_not_trained():
    likelihood = Hinge(3.0)
    assert likelihood.trainable_variables == ()
    gpflow.set_trainable(likelihood.penalty, True)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(likelihood.log_prob(None, [[0.5]], [[1.0]]))
    assert np.isfinite(tape.gradient(loss, likelihood.trainable_variables)[0].numpy())
    likelihood.penalty.assign(1.0)
    np.testing.assert_allclose(likelihood.log_prob(None, [[0.5]], [[1.0]]), [-0.5], rtol=1e-12)


# --- in a plain gpflow.models.SVGP ---------------------------------------------------------------


@pytest.fixture(scope="module", params=["augmented", "exact"])
def optimum(request):
    """Data, bound, and the model that coordinate ascent has brought to its fixed point."""
    data = make_data(40)
    model = make_model(data, likelihood=Hinge(bound=request.param), num_inducing=5)
    gb.inference.CAVI(tol=1e-13, max_steps=2000).run(model, data)
    return data, request.param, model


def plain_svgp(data, bound):
    model = gpflow.models.SVGP(
        gpflow.kernels.SquaredExponential(variance=2.0), Hinge(bound=bound), data[0][:5].copy()
    )
    gpflow.set_trainable((model.kernel, model.inducing_variable), False)
    return model


@pytest.mark.slow
def test_svgp_with_scipy_finds_the_optimum_of_cavi(optimum):
    data, bound, ours = optimum
    model = plain_svgp(data, bound)
    start = model.elbo(data).numpy()
    loss = model.training_loss_closure(data, compile=False)
    minimise(loss, model.trainable_variables, maxiter=1000, ftol=1e-14, gtol=1e-8)
    assert model.elbo(data).numpy() > start + 1
    np.testing.assert_allclose(model.elbo(data), ours.elbo(data), rtol=1e-8)
    # q is known to the square root of the accuracy of the ELBO.
    np.testing.assert_allclose(state(model)[0], state(ours)[0], atol=1e-3)


@pytest.mark.slow
def test_svgp_with_natural_gradients_finds_the_optimum_of_cavi(optimum):
    data, bound, ours = optimum
    model = plain_svgp(data, bound)
    natgrad, q = gpflow.optimizers.NaturalGradient(0.7), [(model.q_mu, model.q_sqrt)]
    loss = tf.function(model.training_loss_closure(data, compile=False), autograph=False)
    step = tf.function(lambda: natgrad.minimize(loss, q), autograph=False)
    losses = [loss().numpy()]
    for _ in range(100):
        step()
        losses.append(loss().numpy())
    assert (np.diff(losses) <= 1e-10).all() and losses[-1] < losses[0] - 1
    np.testing.assert_allclose(-losses[-1], ours.elbo(data), rtol=1e-9)
    np.testing.assert_allclose(state(model)[0], state(ours)[0], atol=1e-5)


@pytest.mark.drill
@pytest.mark.slow
def test_svgp_with_adam_comes_near_the_optimum_of_cavi(optimum):
    data, bound, ours = optimum
    model = plain_svgp(data, bound)
    adam, loss = gpflow.keras.tf_keras.optimizers.Adam(0.05), model.training_loss_closure(data)
    step = tf.function(lambda: adam.minimize(loss, model.trainable_variables))
    for _ in range(200):
        step()
    # Adam goes around its optimum at a distance that its step size sets.
    np.testing.assert_allclose(model.elbo(data), ours.elbo(data), rtol=2e-3)
    assert model.elbo(data).numpy() <= ours.elbo(data).numpy() + 1e-8
