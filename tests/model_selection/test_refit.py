"""Fits of q to parts of the rows, beside models that see these rows only."""

import gpflow
import numpy as np
import pytest
from helpers import make_data, make_model

import gpflow_bsvm as gb
from gpflow_bsvm.engine.contracts import open_data
from gpflow_bsvm.inference import CAVI, History
from gpflow_bsvm.inference.run import Reports
from gpflow_bsvm.likelihoods import Hinge, LevelHinge, OneVsRest
from gpflow_bsvm.model_selection.held_out import Refit, Refits
from gpflow_bsvm.models import LinearBSVM
from gpflow_bsvm.prediction.calibration import leave_one_out

#: Ends where the bound moves by rounding only, 1e-12 of it: that is where f moves by 1e-6 or so.
EXACT, CLOSE = CAVI(tol=1e-14), {"rtol": 1e-5, "atol": 5e-6}
PARTS = np.arange(25), np.arange(20, 60), np.arange(5)


def separate():
    kernels = [gpflow.kernels.SquaredExponential(2.0, scale) for scale in (0.5, 1.0, 2.0)]
    return gpflow.kernels.SeparateIndependent(kernels)


def own_features(data):
    Z = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(data[0][:12])
    )
    return gb.models.BSVM(separate(), OneVsRest(3), Z)


MODELS = {
    "hinge": lambda data: make_model(data, num_inducing=30),
    "levels": lambda data: make_model(data, likelihood=LevelHinge(2.0), num_inducing=12),
    "mean function": lambda data: make_model(
        data, mean_function=gpflow.functions.Constant(0.3), num_inducing=12
    ),
    "three classes": lambda data: make_model(data, likelihood=OneVsRest(3), num_inducing=12),
    "features of each": own_features,
    "linear": lambda data: LinearBSVM(2, Hinge()),
}


@pytest.fixture(scope="module")
def rows():
    X, Y = make_data()
    return X, Y, np.random.default_rng(1).uniform(0.5, 2, size=len(X))


def refit_of(model, rows, **options):
    X, Y, weight = rows
    return Refit(model, open_data(model, (X, Y), weight), tol=EXACT.tol, **options)


FAST = ("levels", "linear")


@pytest.mark.parametrize(
    "name",
    [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in MODELS],
)
def test_a_part_is_fitted_as_by_a_model_that_sees_nothing_else(name, rows):
    """Parts of more rows than inducing points, and of fewer."""
    X, Y, weight = rows
    if name in ("three classes", "features of each"):
        Y = np.digitize(X[:, :1], [-0.5, 0.5]).astype(float)
    model = MODELS[name]((X, Y))
    refit = refit_of(model, (X, Y, weight))
    for part in PARTS:
        f = refit(part)
        alone = MODELS[name]((X, Y))
        rows = open_data(alone, (X[part], Y[part]), weight[part], part=True)
        EXACT.run_on(alone, rows, History(), Reports())
        others = np.setdiff1d(np.arange(len(X)), part)
        for found, expected in zip(f, alone.predict_f(X[others])):
            np.testing.assert_allclose(found.numpy()[others], expected, **CLOSE)
        left_out = leave_one_out(alone, (X[part], Y[part]), sample_weight=weight[part])
        for found, expected in zip(f, left_out):
            np.testing.assert_allclose(found.numpy()[part], expected, **CLOSE)


def test_where_a_fit_begins_does_not_matter(rows):
    """Neither by the fit before, nor by sites of a likelihood of another kind."""
    model, part = MODELS["levels"](rows[:2]), PARTS[1]
    first, of_hinge = refit_of(model, rows), refit_of(MODELS["hinge"](rows[:2]), rows)
    of_hinge(part)
    assert of_hinge.sites.w.shape != first.sites.w.shape
    expected = first(part)
    for again in (first, refit_of(model, rows, sites=of_hinge.sites)):
        again(PARTS[0])
        for found, value in zip(again(part), expected):
            np.testing.assert_allclose(found, value, **CLOSE)


def test_a_model_is_left_as_it_is(rows):
    model = MODELS["levels"](rows[:2])
    before = [variable.numpy() for variable in model.variables]
    refit_of(model, rows)(PARTS[0])
    for variable, value in zip(model.variables, before):
        np.testing.assert_array_equal(variable, value)


def test_single_precision_may_overflow_where_double_does_not(rows, monkeypatch):
    kernel = gpflow.kernels.SquaredExponential(1e100)
    make = lambda: make_model(rows[:2], kernel=kernel)  # noqa: E731
    X, Y, weight = rows
    expected = Refit(make(), open_data(make(), (X, Y), weight))(PARTS[1])
    monkeypatch.setattr("gpflow_bsvm.engine.projected_data.BIG_PASS", 0)
    found = Refit(make(), open_data(make(), (X, Y), weight))(PARTS[1])
    np.testing.assert_array_equal(found.mean, expected.mean)


def test_what_is_not_finite_is_an_error(rows):
    model = MODELS["levels"](rows[:2])
    model.likelihood.penalty.unconstrained_variable.assign(np.nan)
    with pytest.raises(ValueError, match="not finite for a part of the rows: the kernel or the m"):
        refit_of(model, rows)(PARTS[0])


def test_inputs_are_not_kept_where_they_are_too_wide(rows, monkeypatch):
    expected = refit_of(MODELS["levels"](rows[:2]), rows)(PARTS[1])
    monkeypatch.setattr("gpflow_bsvm.engine.projected_data.CACHE_BYTES", 0)
    refit = refit_of(MODELS["levels"](rows[:2]), rows)
    assert refit._rows.batch.X.shape == (60, 0)
    for found, value in zip(refit(PARTS[1]), expected):
        np.testing.assert_allclose(found, value, rtol=1e-12)


def test_directions_without_information_are_dropped(rows, monkeypatch):
    """They move neither means nor deviations by more than a hundredth of a deviation."""
    model = MODELS["levels"](rows[:2])
    model.kernel.lengthscales.assign(3.0)
    full = refit_of(model, rows)
    monkeypatch.setattr("gpflow_bsvm.model_selection.held_out.NEGLIGIBLE", 1e-2 / EXACT.tol)
    few = refit_of(model, rows)
    assert few._rows.features.phi.shape[-1] < full._rows.features.phi.shape[-1]
    for part in PARTS:
        (mean, variance), (expected, spread) = few(part), full(part)
        np.testing.assert_array_less(np.abs(mean - expected) / np.sqrt(spread), 0.01)
        np.testing.assert_allclose(np.sqrt(variance / spread), 1, atol=0.01)


def test_the_density_with_another_link_is_that_of_a_model_with_this_link(rows):
    """Fits do not depend on the link; those of a worse penalty do not count."""
    model, other = (
        make_model(rows[:2], likelihood=LevelHinge(2.0, link=link), num_inducing=12)
        for link in ("integral", "stationary")
    )
    refits = Refits(rows, model, False)
    best = refits(model, False).mean
    model.likelihood.penalty.assign(1e-3)
    assert refits(model, False).mean < best
    expected = Refits(rows, other, False)(other, False)
    total = expected.weight @ expected.log_density
    np.testing.assert_allclose(refits.density(other.likelihood), total, rtol=1e-12)
    assert abs(best * expected.weight.sum() / total - 1) > 1e-3
