"""The sparse model: natural parameters, labels of all likelihoods, and its refusals."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import inducing_variables as iv
from gpflow import kernels as k
from helpers import as_svgp, assert_same_state, in_a_graph, make_model, randomise, state

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import Hinge

SE = k.SquaredExponential

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


@pytest.mark.parametrize(
    "name",
    ["coregionalised", "plain points", "shared coregion", "fallback", "one kernel", "no Kuf"],
)
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
        "fallback": (
            k.SharedIndependent(SE(), 2),
            iv.FallbackSharedIndependentInducingVariables(iv.InducingPoints(Z)),
        ),
        "one kernel": (SE(), iv.SharedIndependentInducingVariables(iv.InducingPoints(Z))),
        "no Kuf": (k.Matern32(), iv.Multiscale(Z, Z**2)),
    }[name]
    told = f"independent latent .*, got {type(kernel).__name__} with {type(variable).__name__}: use"
    with pytest.raises(ValueError, match=told):
        gb.models.BSVM(kernel, Hinge(), variable, num_latent_gps=2)


@pytest.mark.parametrize(
    "kernel", [k.SharedIndependent(SE(), 2), k.SeparateIndependent([SE(), SE()])]
)
@pytest.mark.parametrize("numbers", [[5], [5, 5, 5], [5, 4]])
def test_each_latent_function_needs_its_points(data, kernel, numbers):
    points = [iv.InducingPoints(data[0][:number].copy()) for number in numbers]
    variable = iv.SeparateIndependentInducingVariables(points)
    told = rf"each of its 2 latent functions, got variables of \[{str(numbers)[1:-1]}\] points"
    with pytest.raises(ValueError, match=told):
        gb.models.BSVM(kernel, Hinge(), variable)


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
    with pytest.raises(ValueError, match="needs a model with num_latent_gps=3, got 1"):
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
    assert gb.models.BSVM(kernel, Hinge(), points, num_latent_gps=None).num_latent_gps == 2
    with pytest.raises(ValueError, match=r"SharedIndependent needs .*num_latent_gps=2, got 3"):
        gb.models.BSVM(kernel, Hinge(), points, num_latent_gps=3)


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "2"])
def test_a_number_of_latent_functions_is_a_positive_whole_number(data, number):
    Z = data[0][:4].copy()
    for make in (
        lambda **how: gb.models.BSVM(SE(), Hinge(), Z, **how),
        lambda **how: gb.models.BatchBSVM(data, SE(), Hinge(), **how),
        lambda **how: gb.papers.wenzel2017.DualBSVM(data, SE(), Hinge(), Z, **how),
    ):
        with pytest.raises(ValueError, match=r"num_latent_gps must be (a whole|at least 1)"):
            make(num_latent_gps=number)


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


@pytest.mark.slow
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
        assert np.isfinite(in_a_graph(model.elbo)((X, labels)))
    assert np.ptp([q for q, _ in found], axis=0).max() == 0


@pytest.mark.parametrize(
    "part", [Hinge, pytest.param(gpflow.likelihoods.Gaussian, marks=pytest.mark.slow)]
)
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
    with pytest.raises(ValueError, match=r"Y's last column\) must be integers in 0..1, got 2"):
        batch.elbo((X, np.hstack([Y, which + 1])))
    with pytest.raises(ValueError, match=r"then the number of a likelihood \(shape \[N, 2\]\)"):
        make_model(data, likelihood=likelihood).natgrad_step(data, 0.5)
    with pytest.raises(ValueError, match="not for each class: take the desired column"):
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


def test_predictions_leave_gpflows_settings_alone(data, monkeypatch):
    """Threads share them."""
    model = make_model(data)
    changes = []
    monkeypatch.setattr(gpflow.config.__config__, "set_config", changes.append)
    model.predict_f(data[0], full_cov=True)
    model.posterior()
    assert not changes
