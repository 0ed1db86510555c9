"""Learning a kernel with the inducing points that it tells apart."""

import warnings
from functools import partial

import gpflow
import numpy as np
import pytest
from scipy import stats

from gpflow_bsvm.engine.structure import copied
from gpflow_bsvm.estimators import training
from gpflow_bsvm.estimators.rough import lengthscales
from gpflow_bsvm.estimators.specification import Specification, make_model
from gpflow_bsvm.estimators.training import InitialModel, initial_model, told_apart
from gpflow_bsvm.inducing_points import greedy_variance, kmeans
from gpflow_bsvm.inducing_points.points import exchange
from gpflow_bsvm.inference import CAVI, History, fit
from gpflow_bsvm.notices import warn
from gpflow_bsvm.prediction import calibrate
from gpflow_bsvm.priors import default_kernel


@pytest.fixture(scope="module")
def Z():
    return np.random.default_rng(0).uniform(-1, 1, size=(40, 2))


def kernel_of(scale):
    return gpflow.kernels.SquaredExponential(2.0, scale) + gpflow.kernels.Constant(0.5)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_points_are_those_of_greedy_variance_at_half_the_lengthscales(Z, scale):
    kernel = kernel_of(scale) + gpflow.kernels.Linear(0.1)  # no two variances are equal
    few, expected = told_apart(kernel, Z), greedy_variance(2 * Z, len(Z), kernel, tol=1e-2) / 2
    assert 1 < len(few) < len(Z)
    np.testing.assert_array_equal(np.unique(few, axis=0), np.unique(expected, axis=0))


def test_a_kernel_that_tells_all_points_apart_keeps_all(Z):
    np.testing.assert_array_equal(told_apart(kernel_of(0.01), Z), Z)


@pytest.fixture(scope="module")
def rows(Z):
    X = np.random.default_rng(1).uniform(-1, 1, size=(60, 2))
    return X, (X.sum(axis=1, keepdims=True) > 0) * 1.0, np.ones(60)


@pytest.mark.parametrize(
    "num_rows, penalty", [(100, 0.16), (8, 0.16), (6, 0.25), (3, 1.0), (2, 1.0)]
)
def test_priors_in_regression_are_long_and_for_few_rows_narrow(num_rows, penalty):
    """With 22 rows of 75 columns they were so wide, with 40 of 8 so short, that f overfitted."""
    X = np.random.default_rng(0).normal(size=(num_rows, 3))
    found = make_model(Specification(loss="epsilon_insensitive"), X).kernel
    expected = default_kernel(3, penalty=penalty)
    for part in (found, expected):
        np.testing.assert_array_equal(part.kernels[0].lengthscales, np.full(3, np.sqrt(3)))
    long = [stats.lognorm(0.4 / np.sqrt(penalty), scale=3 * np.sqrt(3)).logpdf(0.7)] * 3
    np.testing.assert_allclose(found.kernels[0].lengthscales.prior.log_prob([0.7] * 3), long)
    for one, other in zip(found.kernels, expected.kernels, strict=True):
        assert one.variance.prior.log_prob(0.7) == other.variance.prior.log_prob(0.7)


def learned(Z, rows, kernel=None):
    return initial_model(Specification(2, "levels", 2.0, kernel=kernel, Z=Z), rows)


def test_only_a_default_kernel_is_also_learned_from_a_short_lengthscale(Z, rows, monkeypatch):
    asked = []

    def noted(model, rows, some, learn):
        asked.append((rows.num_rows, some.num_rows))

    monkeypatch.setattr(training, "learn_from_shorter", noted)
    monkeypatch.setattr(training, "FEWEST_ROUGH_ROWS", 30)
    monkeypatch.setattr(training, "ROUGH_PART", 1e6)
    learned(Z, rows)
    assert asked == [(60, 30)]
    learned(Z, rows, kernel_of(1.0))
    assert len(asked) == 1


@pytest.mark.slow
def test_a_kernel_learned_with_few_points_has_the_bound_of_all(Z, rows, monkeypatch):
    model, history = learned(Z, rows)
    np.testing.assert_array_equal(model.inducing_variable.Z, Z)
    monkeypatch.setattr(training, "MOST_POINTS", 0.0)
    # VEM ends when rounds gain 1e-4 of the bound, 20 points explain 99 % of the prior's variance.
    np.testing.assert_allclose(history.elbo[-1], learned(Z, rows).history.elbo[-1], rtol=1e-3)


@pytest.mark.slow
def test_learning_goes_on_with_the_points_that_the_learned_kernel_tells_apart(Z, rows):
    model, numbers = learned(Z, rows).model, []

    def run():
        numbers.append(model.q_shape[1])
        model.kernel.kernels[0].lengthscales.assign([0.5, 0.5])
        return len(numbers)

    model.kernel.kernels[0].lengthscales.assign([3.0, 3.0])
    few = len(told_apart(model.kernel, Z))
    assert training._with_few_points(model, run) == 2
    model.kernel.kernels[0].lengthscales.assign([0.5, 0.5])
    assert numbers == [few, len(told_apart(model.kernel, Z))] and numbers[0] < numbers[1]
    np.testing.assert_array_equal(model.inducing_variable.Z, Z)


@pytest.mark.slow
def test_a_users_kernel_is_learned_with_all_points(Z, rows, monkeypatch):
    monkeypatch.setattr(training, "told_apart", None)
    learned(Z, rows, kernel_of(3.0))


def test_shorter_lengthscales_are_tried_on_the_same_rows_whatever_the_seed(rows, monkeypatch):
    monkeypatch.setattr(training, "FEWEST_ROUGH_ROWS", 20)
    monkeypatch.setattr(training, "LEARN_WORK", 1.0)  # so that all numbers are the fewest
    tried = []

    def seen(model, every, some, learn):
        tried.append(some)
        assert every.num_rows == 60

    monkeypatch.setattr(training, "learn_from_shorter", seen)
    for seed in (0, 1):
        initial_model(Specification(num_classes=2, num_inducing=15, seed=seed), rows)
    (first,), (second,) = (list(source.chunks()) for source in tried)
    assert len(first.X) == 20
    np.testing.assert_array_equal(first.X, second.X)


def give_densities(means, monkeypatch):
    """Leave-one-out densities with these means, in this order, in place of computed ones."""
    left_out = iter(means)
    monkeypatch.setattr(training, "leave_one_out_density", lambda *about: next(left_out))

    def of_rows(model, rows):
        return np.full(rows.num_rows, next(left_out)), np.ones(rows.num_rows)

    monkeypatch.setattr(training, "left_out_log_densities", of_rows)
    return left_out


@pytest.mark.parametrize(("density", "kept"), [(-0.1, True), (-2.0, False)])
def test_only_the_model_that_is_kept_warns(rows, density, kept, monkeypatch):
    """Both where M grows and for a steeper hinge."""

    def fit_q(spec, model, rows, *about, **kind):
        warn(f"{model.q_shape[1]} points")
        return History(converged=True)

    monkeypatch.setattr(training, "fit_q", fit_q)
    monkeypatch.setattr(training, "grown", lambda model, *limits: 15)
    spec = HINGE._replace(num_inducing=5, learn_kernel=False)
    model = make_model(spec, rows[0])
    give_densities([-1.0, density] * 2, monkeypatch)
    for run in (training.grow, partial(training.steeper, is_learned=True)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            run(spec, model, rows)
        number = 15 if run is training.grow else 5
        assert [str(one.message) for one in said] == [f"{number} points"] * kept


HINGE = Specification(2, "hinge", 16.0, num_inducing=20)


@pytest.mark.parametrize(
    ("densities", "fixed", "best"),
    [
        ((-1.0, -2.0, -3.0), {}, (16.0, 1.0)),
        ((-3.0, -1.0, -2.0), {}, (64.0, 1.0)),
        ((-3.0, -2.0, -1.0), {}, (64.0, 0.8)),
        ((-3.0, np.nan, np.nan), {}, (16.0, 1.0)),
        ((-3.0, -1.0, -2.0), {"converged": False}, (16.0, 1.0)),
        ((-3.0, -2.0), {"is_learned": True}, (64.0, 1.0)),
        ((-3.0, -2.0), {"learn_kernel": False}, (64.0, 1.0)),
        ((-0.01, -0.001), {"is_learned": True}, (16.0, 1.0)),  # less than an error would cost
    ],
)
def test_the_left_out_density_decides_on_a_steeper_hinge(rows, densities, fixed, best, monkeypatch):
    given = give_densities(densities, monkeypatch)
    fixed = {"is_learned": False, "converged": True} | fixed
    is_learned, history = fixed.pop("is_learned"), History(converged=fixed.pop("converged"))
    monkeypatch.setattr(training, "fit_q", lambda *about, **kind: history)
    spec = HINGE._replace(**fixed)
    model = make_model(spec, rows[0])
    before = lengthscales(model)[0].numpy()
    chosen, found = training.steeper(spec, model, rows, is_learned)
    assert not list(given)
    assert chosen.penalty == best[0]
    np.testing.assert_allclose(found.likelihood.penalty, best[0], rtol=1e-12)
    np.testing.assert_allclose(lengthscales(found)[0], best[1] * before, rtol=1e-12)
    np.testing.assert_array_equal(lengthscales(model)[0], before)


@pytest.mark.slow
def test_a_steeper_hinge_is_fitted_and_calibrated(rows, monkeypatch):
    give_densities((-3.0, -1.0, -2.0), monkeypatch)
    given = InitialModel(make_model(HINGE, rows[0]), None)
    model, _ = training.train(HINGE, rows, given)
    _, model = training.steeper(HINGE, model, rows, is_learned=False)
    assert model.likelihood.penalty.numpy() == 64.0
    X, Y, _ = rows
    mean = model.predict_f(X)[0].numpy()
    scale = float(model.likelihood.scale.numpy())
    assert calibrate(model, (X, Y))["scale"] == pytest.approx(scale, rel=1e-3)  # a maximum, flat
    CAVI().run(model, (X, Y))
    np.testing.assert_allclose(model.predict_f(X)[0], mean, rtol=0.02, atol=0.02)  # fit's tolerance


def regression(frequency):
    """:return: a specification with few points, its learned model, and 60 rows of waves."""
    X = np.random.default_rng(2).uniform(-1, 1, size=(60, 1))
    noise = np.random.default_rng(3).normal(size=X.shape)
    data = X, np.sin(frequency * X) + 0.1 * noise, np.ones(60)
    spec = Specification(loss="epsilon_insensitive", learned=("penalty", "epsilon"))
    spec = spec._replace(penalty=2.0, num_inducing=6, grow=True)
    return spec, initial_model(spec, data), data


def gain_of_twice_as_many(model, data):
    """:return: nats per row, after fits to convergence with the same kernel."""
    bounds = []
    for number in (1, 2):
        other = copied(model)
        Z = kmeans(data[0], number * model.q_shape[1], max_iter=100)
        exchange(other, Z if number > 1 else model.inducing_variable.Z.numpy())
        bounds.append(fit(other, data[:2]).elbo[-1])
    return (bounds[1] - bounds[0]) / len(data[0])


def test_the_kernel_of_a_rough_function_is_learned_with_as_many_points_as_it_needs():
    spec, begun, data = regression(frequency=6)
    assert gain_of_twice_as_many(begun.model, data) > training.WORTH_LEARNING
    larger, found = training.with_enough_points(spec, begun, data)
    assert found.model.q_shape[1] == len(larger.Z) > 6
    assert found.history.elbo[-1] > begun.history.elbo[-1] + 60 * training.WORTH_LEARNING
    assert gain_of_twice_as_many(found.model, data) < training.WORTH_LEARNING


@pytest.mark.parametrize(
    "frequency, options", [(2, {}), (25, {"grow": False}), (25, {"learn_kernel": False})]
)
def test_other_kernels_are_learned_once(frequency, options):
    spec, begun, data = regression(frequency)
    spec = spec._replace(**options)
    assert training.with_enough_points(spec, begun, data) == (spec, begun)
