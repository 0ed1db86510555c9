"""Bad input: one clear error each, that names what is wrong."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels as k
from helpers import assert_same_state, make_data, make_model, state
from runs import RUNS

import gpflow_bsvm as gb
from gpflow_bsvm.data.checks import check_inputs, check_weights, duplicate_rows
from gpflow_bsvm.inference import CAVI, ECM, ML2, SVI, VEM, RobbinsMonro
from gpflow_bsvm.likelihoods import Hinge, Quantile


def test_good_weights():
    assert check_weights(None, 3).tolist() == [[1], [1], [1]]
    assert check_weights([1, 0, 2], 3).tolist() == [[1], [0], [2]]
    assert check_weights(np.zeros(2), 2, minibatch=True).tolist() == [[0], [0]]


def test_types_that_tensorflow_lacks_are_named():
    with pytest.raises(ValueError, match=r"X has dtype .*, but .* is float64"):
        check_inputs(np.ones((2, 1), np.longdouble))
    with pytest.raises(ValueError, match="X must hold numbers, got object: encode words"):
        check_inputs(np.full((2, 1), "a", object))


@pytest.mark.parametrize("kind", [object, ">f8"])
def test_numbers_in_other_forms_are_numbers(data, kind):
    """As in pandas, whose columns of mixed types have objects, or in files of other machines."""
    one, two = make_model(data), make_model(data)
    CAVI(max_steps=3).run(one, data)
    CAVI(max_steps=3).run(two, tuple(part.astype(kind) for part in data))
    assert_same_state(state(one), state(two), 0)


@pytest.mark.parametrize("dtype", [int, bool, "float32"])
@pytest.mark.parametrize(
    "likelihood", [gb.likelihoods.EpsilonInsensitive, gpflow.likelihoods.Gaussian]
)
def test_labels_of_any_numeric_type(data, likelihood, dtype):
    one, two = (make_model(data, likelihood=likelihood()) for _ in range(2))
    given = data[0], data[1].astype(dtype)
    CAVI(max_steps=3).run(one, data)
    CAVI(max_steps=3).run(two, given)
    assert_same_state(state(one), state(two), 0)
    assert two.elbo(given).numpy() == one.elbo(data).numpy()


@pytest.mark.parametrize("place, name", [(0, "X"), (1, "Y")])
def test_rows_of_different_lengths(data, place, name):
    rows = list(data)
    rows[place] = [[1.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match=rf"{name} must have shape \[N, .\], but its rows differ"):
        CAVI().run(make_model(data), tuple(rows))


def test_values_under_a_mask_are_not_used(data):
    """NumPy would convert a masked array to the values under its mask."""
    X, Y = (np.ma.masked_equal(one, one[3, 0]) for one in data)
    model = make_model(data)
    for rows, what in (((X, data[1]), "X"), ((data[0], Y), "Y")):
        with pytest.raises(ValueError, match=f"{what} has masked values; drop such rows"):
            CAVI().run(model, rows)
    with pytest.raises(ValueError, match="sample_weight has masked values"):
        check_weights(np.ma.masked_array([1, 2], mask=[True, False]), 2)


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "algorithm, kwargs, match",
    [
        (CAVI, {"max_steps": 0}, "max_steps must be at least 1"),
        (CAVI, {"tol": -1e-3}, "tol must be at least 0"),
        (CAVI, {"tol": np.nan}, "tol must be at least 0"),
        (CAVI, {"tol": np.inf}, "^tol must be finite, got inf$"),
        (VEM, {"tol": np.inf}, "^tol must be finite, got inf$"),
        (ECM, {"tol": True}, "^tol must be a number, got True$"),
        (CAVI, {"learning_rate": True}, r"learning_rate must be in \(0, 1\], got True"),
        (RobbinsMonro, {"delay": np.inf}, "^delay must be finite, got inf$"),
        (RobbinsMonro, {"forgetting": True}, r"forgetting must be in \(0.5, 1\], got True"),
        (ML2, {"optimizer": np.inf}, "optimizer must be a positive number, .*, got inf"),
        (SVI, {"learning_rate": np.ones(2)}, "learning_rate must be a number in .*, got array"),
        (CAVI, {"learning_rate": 0.0}, r"learning_rate must be in \(0, 1\]"),
        (CAVI, {"learning_rate": 1.1}, r"learning_rate must be in \(0, 1\]"),
        (CAVI, {"learning_rate": np.nan}, r"learning_rate must be in \(0, 1\]"),
        (SVI, {"batch_size": 0}, "batch_size must be at least 1"),
        (SVI, {"max_steps": -1}, "max_steps must be at least 1"),
        (SVI, {"record_every": 0}, "record_every must be at least 1"),
        (SVI, {"learning_rate": 0.0}, r"rate must be in \(0, 1\]"),
        (SVI, {"learning_rate": 2.0}, r"rate must be in \(0, 1\]"),
        (SVI, {"learning_rate": np.nan}, r"rate must be in \(0, 1\]"),
    ],
)
def test_bad_options(algorithm, kwargs, match):
    with pytest.raises(ValueError, match=match):
        algorithm(**kwargs)


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", ["CAVI", "SVI"])
def test_data_on_which_the_kernel_overflows(data, run):
    X, Y = data
    model = gb.models.BSVM(k.Polynomial(4), Hinge(), X[:2].copy())
    before = state(model)
    with pytest.raises(ValueError, match="the ELBO or its gradient is not finite"):
        RUNS[run](model, (1e100 * X, Y))
    assert_same_state(state(model), before, 1e-12)


@pytest.mark.slow
def test_a_likelihood_without_a_gradient(data):
    class Kinked(gb.likelihoods.Probit):
        def _variational_expectations(self, X, Fmu, Fvar, Y):
            zero = tf.sqrt(tf.nn.relu(-tf.square(Fmu)))  # its gradient is infinite times 0
            return super()._variational_expectations(X, Fmu + zero, Fvar, Y)

    model = make_model(data, likelihood=Kinked())
    with pytest.raises(ValueError, match="the ELBO or its gradient is not finite at the start"):
        CAVI().run(model, data)


@pytest.mark.filterwarnings("ignore:the fit has learned next to nothing", "ignore:float64 does not")
@pytest.mark.parametrize(
    ("variance", "bound"),
    [(1e-30, "exact"), (1e10, "augmented"), (1e30, "augmented"), (1e30, "exact")],
)
def test_silly_but_finite_variances_are_no_failure(data, variance, bound):
    model = make_model(data, kernel=k.SquaredExponential(variance), likelihood=Hinge(bound=bound))
    history = CAVI(max_steps=20).run(model, data)
    assert np.isfinite(history.elbo).all()
    assert np.isfinite(model.elbo(data))


def test_constant_and_duplicate_columns_are_no_failure():
    X, Y = make_data(60)
    X = np.hstack([X, np.ones((60, 1)), X[:, :1]])
    history = CAVI().run(make_model((X, Y)), (X, Y))
    assert history.converged


@pytest.mark.parametrize(
    ("likelihood", "Y", "match"),
    [
        (gpflow.likelihoods.Bernoulli(), np.arange(60) % 3.0, "labels must be in .0, 1. or in"),
        (gpflow.likelihoods.Softmax(3), np.repeat("a", 60), "integers in 0..2, got 'a'"),
        (Quantile([0.2, 0.5, 0.8], tied=False), np.repeat("a", 60), "Y must hold numbers, got <U1"),
        (gpflow.likelihoods.Gaussian(), np.repeat("a", 60), "Y must hold numbers, got <U1"),
    ],
)
def test_labels_that_would_be_merged_or_are_words(likelihood, Y, match):
    X = make_data(60)[0]
    model = gb.models.BSVM(k.SquaredExponential(), likelihood, X[:8])
    with pytest.raises(ValueError, match=match):
        CAVI().run(model, (X, Y[:, None]))


def test_a_single_row_of_each_class():
    data = np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]])
    model = make_model(data, num_inducing=2)
    assert CAVI().run(model, data).converged
    p = model.predict_y(data[0])[0].numpy()
    assert p[0] < 0.5 < p[1]
    SVI(batch_size=100, max_steps=3).run(model, data)


def test_duplicate_rows():
    assert duplicate_rows([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [1.0, 2.0]]) == [(0, 2), (0, 3)]
    assert duplicate_rows([[1.0], [2.0]]) == []


@pytest.mark.parametrize(
    "run", [gb.fit, CAVI().run, SVI().run, lambda model, data: gb.active.best_kernel(model, *data)]
)
def test_a_model_without_closed_form_steps(run):
    model = gpflow.models.SVGP(gpflow.kernels.SquaredExponential(), Hinge(), np.zeros((1, 1)))
    with pytest.raises(TypeError, match=r"SVGP has no closed-form steps: use .*BSVM in its place"):
        run(model, (np.zeros((2, 1)), np.array([[0.0], [1.0]])))


def test_what_is_no_likelihood(data):
    for make in (
        lambda: make_model(data, likelihood="hinge"),
        lambda: gb.models.LinearBSVM(2, "hinge"),
        lambda: gb.models.BSVM(gpflow.kernels.Matern32(), Hinge, data[0][:5].copy()),
    ):
        with pytest.raises(TypeError, match=r"expected a likelihood, such as .*Hinge"):
            make()


@pytest.mark.parametrize("kernel", ["rbf", gpflow.kernels.Matern32, None])
def test_what_is_no_kernel(data, kernel):
    with pytest.raises(TypeError, match=r"a kernel of GPflow, such as .*, got ('r|<class|N)"):
        gb.models.BSVM(kernel, Hinge(), data[0][:5].copy())
    with pytest.raises(TypeError, match=r"expected a kernel of GPflow"):
        gb.priors.set_default_priors(kernel, 2)
    with pytest.raises(TypeError, match=r"expected a kernel of GPflow"):
        gb.papers.gold2003.optimise(gb.papers.gold2003.Span(), kernel, data, 1.0)


def test_data_that_are_no_pair(data):
    with pytest.raises(TypeError, match=r"data must be a pair of arrays \(X, Y\), got Matern32"):
        gb.models.BatchBSVM(gpflow.kernels.Matern32(), data, Hinge())
    with pytest.raises(TypeError, match=r"data must be a pair of arrays \(X, Y\), got ndarray"):
        make_model(data).natgrad_step(data[0])


def test_an_array_as_an_option_is_not_shown_in_full(data):
    with pytest.raises(ValueError, match=r"num_features must be a whole number, got .{,40}$"):
        gb.models.LinearBSVM(data[0], Hinge())


def test_what_has_no_head():
    with pytest.raises(TypeError, match=r"head takes a model .* int has NoneType and NoneType"):
        gb.deep.head(5)


def test_a_history_has_columns_of_equal_length(data):
    model = make_model(data)
    columns = CAVI(max_steps=2, tol=0.0).run(model, data).columns(2)
    assert gb.inference.History.from_columns(columns).elbo == columns["elbo"].tolist()
    with pytest.raises(ValueError, match="must have the same positive length"):
        gb.inference.History.from_columns(columns | {"elbo": columns["elbo"][:1]})


def test_a_kernel_of_no_inputs():
    with pytest.raises(ValueError, match="num_features must be at least 1, got 0"):
        gb.priors.ard_kernel(0)


# --- a model that is not as it was made -----------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_model_of_another_float(dtype):
    data, other = make_data(20), np.float32 if dtype is np.float64 else np.float64
    with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
        X, Y = (part.astype(dtype) for part in data)
        model = make_model((X, Y))
    with gpflow.config.as_context(gpflow.config.Config(float=other)):
        X, Y = (part.astype(other) for part in data)
        for use in (
            lambda: CAVI().run(model, (X, Y)),
            lambda: SVI().run(model, [(X, Y)]),
            lambda: model.natgrad_step((X, Y)),
            lambda: model.elbo((X, Y)),
            lambda: model.predict_f(X),
            lambda: model.posterior(),
            lambda: gb.prediction.predict_probabilities(model, X),
        ):
            with pytest.raises(ValueError, match=rf"the model's .* is {dtype.__name__}, but gpf"):
                use()


def test_the_elbo_of_inputs_of_another_float(data):
    with pytest.raises(ValueError, match="X has dtype float32"):
        make_model(data).elbo((data[0].astype(np.float32), data[1]))


def test_nan_in_inducing_points(data):
    Z = data[0][:5].copy()
    Z[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"Z holds nan \(row 2, column 1\)"):
        gb.models.BSVM(k.Matern12(), Hinge(), Z)


def test_inducing_points_that_were_replaced_by_fewer(data):
    model = make_model(data)
    model.inducing_variable = gpflow.inducing_variables.InducingPoints(data[0][:5])
    for use in (CAVI().run, gb.fit, lambda model, data: model.predict_f(data[0])):
        with pytest.raises(ValueError, match=r"q has 8 inducing points.* 5: .*exchange"):
            use(model, data)


def test_nan_in_a_row_of_a_prediction(data):
    model, X = make_model(data), data[0][:3].copy()
    X[1, 0] = np.nan
    mean, variance = model.predict_f(X)
    np.testing.assert_array_equal(np.isnan([mean, variance])[..., 0], 2 * [[False, True, False]])
    with pytest.raises(ValueError, match="X holds nan"):
        gb.prediction.predict_marginals(model, X)


def test_a_dataset_whose_order_is_not_known_is_a_list_of_blocks(data):
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(20)
    with pytest.raises(ValueError, match=r"list\(dataset\)"):
        gb.inference.VEM(max_steps=3).run(make_model(data), dataset)
    one, two = make_model(data), make_model(data)
    gb.inference.VEM(max_steps=3).run(one, list(dataset))
    gb.inference.VEM(max_steps=3).run(two, data)
    assert_same_state(state(one), state(two), 1e-6)


def test_q_moves_whatever_its_flags_say(data):
    """As for GPflow's NaturalGradient, of which users set them to False."""
    one, two = make_model(data), make_model(data)
    gpflow.set_trainable((two.q_mu, two.q_sqrt), False)
    for model in (one, two):
        gb.fit(model, data)
    assert_same_state(state(one), state(two), 0)


# --- what is not finite ---------------------------------------------------------------------------


class Underflowing(gpflow.likelihoods.ScalarLikelihood):
    """log p is -inf far from the label."""

    def _scalar_log_prob(self, X, F, Y):
        return tf.math.log(tf.exp(-1e3 * tf.square(F - Y)))

    def _conditional_mean(self, X, F):
        return F

    _conditional_variance = _conditional_mean


class WithoutSecond(gpflow.likelihoods.Gaussian):
    """Where Y > 0, its expectation has no derivative by the variance."""

    def _variational_expectations(self, X, Fmu, Fvar, Y):
        @tf.custom_gradient
        def zero(variance):
            return tf.zeros_like(variance), lambda d: tf.where(Y > 0, np.nan * d, tf.zeros_like(d))

        expectation = super()._variational_expectations(X, Fmu, Fvar, Y)
        return expectation + tf.reduce_sum(zero(Fvar), axis=-1)


ALGORITHMS = pytest.mark.parametrize(
    "algorithm", [CAVI(), SVI(max_steps=9), gb.inference.VEM(), gb.inference.ML2(max_steps=9)]
)


@pytest.mark.slow
@ALGORITHMS
def test_a_likelihood_that_is_not_finite_is_named_with_label_and_f(data, algorithm):
    model = make_model(data, likelihood=Underflowing())
    what = r"log density of Underflowing is not finite at row 0, for the label \[.*\] at f = \[0"
    with pytest.raises(ValueError, match=what):
        algorithm.run(model, (data[0], data[0][:, :1]))


@pytest.mark.slow
@ALGORITHMS
def test_the_row_at_which_kernel_or_mean_function_overflow(data, algorithm):
    X = data[0].copy()
    X[3] = 1e140
    with pytest.raises(ValueError, match=r"kernel Polynomial overflows at row 3, X = \[1.e\+140"):
        algorithm.run(make_model(data, kernel=k.Polynomial(3)), (X, data[1]))
    steep = gpflow.functions.Linear(np.full((2, 1), 1e200))
    with pytest.raises(ValueError, match="mean function Linear overflows at row 3"):
        algorithm.run(make_model(data, mean_function=steep), (X, data[1]))


def test_where_only_the_second_derivative_fails_steps_follow_the_first(data):
    X, Y = data[0], data[0][:, :1]
    model = make_model(data, likelihood=WithoutSecond(0.1))
    with pytest.warns(UserWarning, match="sites") as told:
        history = CAVI().run(model, (X, Y))
    assert len(told) == 1 and history.clipped == np.sum(Y > 0)
    assert (np.diff(history.elbo) > -1e-9).all()
    best = make_model(data, likelihood=gpflow.likelihoods.Gaussian(0.1))
    CAVI().run(best, (X, Y))
    np.testing.assert_allclose(model.predict_f(X)[0], best.predict_f(X)[0], atol=0.05)
