"""The random walk and the gradient ascent of Gold & Sollich (2003, 4.1, 4.3), early stopping."""

import math

import gpflow
import numpy as np
import pytest
from conftest import make_data

from gpflow_bsvm.model_selection import (
    GACV,
    Criterion,
    Gradient,
    LeaveOneOut,
    SampledEvidence,
    optimise,
    random_starts,
    svm_mode,
)

#: Of the logarithms of variance, lengthscales and penalty, where a `Bowl` is best.
BEST = np.array([0.7, -0.4, 0.9, 0.5])
NAMES = (".variance", ".lengthscales", "penalty")


@pytest.fixture(scope="module")
def data():
    return make_data(20)


def kernel_of_two():
    return gpflow.kernels.SquaredExponential(1.0, lengthscales=[1.0, 1.0])


class Bowl(Criterion):
    """-sum_i weight_i d_i^2 + d_i^4, d = x - BEST of the logarithms x, whatever the data."""

    greater_is_better = True
    has_gradient = True

    def __init__(self, weights=(1.0, 1.0, 1.0, 1.0), values=True, noise=0.0, limit=math.inf):
        self.weights, self.values, self.noise = np.array(weights), values, noise
        self.limit, self.seen = limit, []
        self.random = np.random.default_rng(0)

    @property
    def has_value(self):
        return self.values

    def _off(self, kernel, penalty):
        parts = (kernel.variance.numpy(), kernel.lengthscales.numpy(), penalty)
        v = np.concatenate([np.reshape(part, -1) for part in parts])
        self.seen.append(v)
        if v[0] > self.limit:
            raise ValueError("too large")
        return v, np.log(v) - BEST

    def __call__(self, kernel, data, penalty):
        _, off = self._off(kernel, penalty)
        return -float(self.weights @ off**2 + (off**4).sum())

    def gradient(self, kernel, data, penalty):
        v, off = self._off(kernel, penalty)
        slopes = -(2 * self.weights * off + 4 * off**3 + self.noise * self.random.normal(size=4))
        slopes, errors = slopes / v, np.abs(self.noise / v)
        found = [
            ({".variance": part[0], ".lengthscales": part[1:3]}, part[3])
            for part in (slopes, errors)
        ]
        value = self(kernel, data, penalty) if self.values else math.nan
        error = Gradient(math.nan, *found[1]) if self.noise else None
        return Gradient(value, *found[0], error)


def off(found):
    parts = [np.reshape(found.best.parameters[name], -1) for name in NAMES]
    return np.log(np.concatenate(parts)) - BEST


def values(found):
    return np.array([place.value for place in found.best.path])


# --- random walk ---------------------------------------------------------------------------------


def test_walk_is_greedy_and_comes_near(data):
    criterion, kernel = Bowl(), kernel_of_two()
    found = optimise(criterion, kernel, data, 1.0, method="random-walk", max_evaluations=300)
    assert np.abs(off(found)).max() < 0.03 and found.best.converged
    assert (np.diff(values(found)) >= 0).all() and len(values(found)) > 10
    assert found.best.evaluations <= 300
    np.testing.assert_allclose(found.best.value, values(found)[-1])
    np.testing.assert_allclose(kernel.variance.numpy(), found.best.parameters[".variance"])
    steps = np.diff(criterion.seen[:-1], axis=0)  # one parameter moves, from where the walk is
    assert (np.count_nonzero(np.abs(steps) > 1e-12, axis=1) <= 2).all()


def test_walk_takes_half_of_its_steps(data):
    criterion = Bowl()
    optimise(criterion, kernel_of_two(), data, 1.0, method="random-walk", max_evaluations=200)
    costs = [-criterion.__class__.__call__(criterion, *made(v)) for v in list(criterion.seen[:200])]
    best, taken = costs[0], 0
    for cost in costs[1:]:
        taken, best = taken + (cost < best), min(best, cost)
    assert 0.35 < taken / 199 < 0.6  # balance at half, less while the steps still shrink


def made(v):
    kernel = kernel_of_two()
    kernel.variance.assign(v[0])
    kernel.lengthscales.assign(v[1:3])
    return kernel, None, v[3]


def test_equal_starts_walk_their_own_ways(data):
    how = {"method": "random-walk", "max_evaluations": 20, "starts": [{}]}
    one, again, other = (
        optimise(Bowl(), kernel_of_two(), data, 1.0, seed=seed, **how) for seed in (0, 0, 1)
    )
    first = [optimum.value for optimum in one.optima]
    assert first[0] != first[1]
    assert first == [optimum.value for optimum in again.optima]
    assert first != [optimum.value for optimum in other.optima]


@pytest.mark.parametrize("method", ["random-walk", "gradient-ascent"])
def test_no_value_leaves_its_bounds(data, method):
    criterion = Bowl()
    found = optimise(criterion, kernel_of_two(), data, 1.0, method=method, reach=1.5)
    assert (np.abs(np.log(criterion.seen)) < np.log(1.5) + 1e-9).all()
    assert set(found.best.at_edge) == set(NAMES) - {".lengthscales"} | {".lengthscales"}
    np.testing.assert_allclose(found.best.parameters["penalty"], 1.5, rtol=1e-3)
    assert found.best.converged


def test_walk_on_a_step_function_ends(data):
    kernel = gpflow.kernels.SquaredExponential(1.0)
    found = optimise(LeaveOneOut(), kernel, data, 1.0, method="random-walk", max_evaluations=90)
    assert found.best.converged and found.best.evaluations < 90


# --- gradient ascent -----------------------------------------------------------------------------


@pytest.mark.parametrize("has_values", [True, False])
@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (1, 30, 0.1, 5)])
def test_ascent_comes_near_with_a_rate_for_each(data, weights, has_values):
    criterion = Bowl(weights, has_values)
    found = optimise(criterion, kernel_of_two(), data, 1.0, method="gradient-ascent")
    assert found.best.converged and found.best.evaluations < 80
    peaks = [max(np.linalg.norm(p.slopes[name]) for p in found.best.path) for name in NAMES]
    for name, peak in zip(NAMES, peaks):
        assert np.linalg.norm(found.best.path[-1].slopes[name]) <= 0.02 * peak
    assert np.abs(off(found)).max() < 0.05
    assert np.isnan(found.best.value) != has_values
    if has_values:
        assert (np.diff(values(found)) >= 0).all()


def test_slopes_of_the_path_are_logarithmic_but_of_the_penalty(data):
    found = optimise(Bowl(), kernel_of_two(), data, 2.0, method="gradient-ascent")
    place = found.best.path[0]
    expected = -2 * (0 - BEST[:3]) - 4 * (0 - BEST[:3]) ** 3
    np.testing.assert_allclose(place.slopes[".variance"], expected[0])
    np.testing.assert_allclose(place.slopes[".lengthscales"], expected[1:])
    away = np.log(2.0) - BEST[3]
    np.testing.assert_allclose(place.slopes["penalty"], (-2 * away - 4 * away**3) / 2.0)


def test_ascent_ends_within_the_noise(data):
    for noise in (0.02, 0.5):
        criterion = Bowl((1, 30, 0.1, 5), values=False, noise=noise)
        found = optimise(criterion, kernel_of_two(), data, 1.0, method="gradient-ascent")
        assert found.best.converged and found.best.evaluations < 120
        slopes = np.array([-2 * criterion.weights * off(found) - 4 * off(found) ** 3])
        assert np.abs(slopes).max() < 6 * noise


def test_steps_into_the_impossible_are_discarded(data):
    criterion = Bowl(limit=np.exp(BEST[0]) + 1e-3)  # just behind the best place
    found = optimise(criterion, kernel_of_two(), data, 1.0, method="gradient-ascent")
    assert np.abs(off(found)).max() < 0.05
    with pytest.raises(ValueError, match="too large"):
        optimise(Bowl(limit=0.5), kernel_of_two(), data, 1.0, method="gradient-ascent")


def test_evaluations_have_an_end(data):
    criterion = Bowl(values=False)
    how = {"method": "gradient-ascent", "max_evaluations": 4}
    found = optimise(criterion, kernel_of_two(), data, 1.0, **how)
    assert found.best.evaluations == 4 and not found.best.converged
    assert len(criterion.seen) == 5  # the last for its warnings


# --- early stopping ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["random-walk", "gradient-ascent", "Nelder-Mead"])
def test_the_least_validation_error_of_the_path_counts(data, method):
    X, Y = make_data(200, seed=5)
    kernel = kernel_of_two()
    how = {"method": method, "max_evaluations": 25, "starts": [{"penalty": 3.0}]}
    found = optimise(Bowl(), kernel, data, 0.02, validation=(X, Y), **how)
    for optimum in found.optima:
        errors = []
        for place in optimum.path:
            other = kernel_of_two()
            other.variance.assign(place.parameters[".variance"])
            other.lengthscales.assign(place.parameters[".lengthscales"])
            mode = svm_mode(other, data, float(place.parameters["penalty"]))
            f = mode.predict(other, data[0], X)
            errors.append(np.mean((f > 0) != (Y[:, 0] == 1)))
            np.testing.assert_allclose(place.validation_error, errors[-1])
        assert optimum.validation_error == min(errors) < max(errors)
        last = np.flatnonzero(np.array(errors) == min(errors))[-1]
        assert optimum.parameters is optimum.path[last].parameters
    least = min(optimum.validation_error for optimum in found.optima)
    assert found.best.validation_error == least
    np.testing.assert_allclose(kernel.variance.numpy(), found.best.parameters[".variance"])
    assert "validation error: " in str(found)


def test_without_validation_there_is_no_such_error(data):
    found = optimise(GACV(), kernel_of_two(), data, 1.0, max_evaluations=3)
    assert found.best.validation_error is None and found.best.path[0].slopes is None
    assert "validation" not in str(found)


# --- bad input -----------------------------------------------------------------------------------


def test_bad_validation(data):
    X, Y = data
    for validation, match in (
        (X, r"validation must be a pair \(X, Y\), got ndarray"),
        ((X[:, :1], Y), "validation has 1 columns, the data have 2"),
        ((X, Y + 3), "must be in"),
        ((X[:3], Y), "rows"),
    ):
        with pytest.raises(ValueError, match=match):
            optimise(Bowl(), kernel_of_two(), data, 1.0, validation=validation)


def test_gradients_alone_need_an_ascent_and_a_judge(data):
    for criterion in (Bowl(values=False), SampledEvidence()):
        name = type(criterion).__name__
        with pytest.raises(ValueError, match=f"{name} has gradients only: use method="):
            optimise(criterion, kernel_of_two(), data, 1.0, method="random-walk")
        how = {"method": "gradient-ascent", "starts": [{}]}
        with pytest.raises(ValueError, match="which of 2 starts ended best"):
            optimise(criterion, kernel_of_two(), data, 1.0, **how)
    with pytest.raises(ValueError, match="LeaveOneOut has no gradient"):
        optimise(LeaveOneOut(), kernel_of_two(), data, 1.0, method="gradient-ascent")
    with pytest.raises(ValueError, match="seed must be at least 0"):
        optimise(Bowl(), kernel_of_two(), data, 1.0, seed=-1)


def test_starts_of_ranges():
    ranges = {".variance": (0.5, 4.0), ".lengthscales": (1.0, 9.0), "penalty": (0.4, 0.8)}
    starts = random_starts(kernel_of_two(), 1.0, 400, ranges=ranges, seed=1)
    for name, (low, high) in ranges.items():
        drawn = np.array([start[name] for start in starts])
        assert (low <= drawn).all() and (drawn <= high).all()
        middle = np.median(drawn)
        expected = (low + high) / 2 if name == "penalty" else np.sqrt(low * high)
        np.testing.assert_allclose(middle, expected, rtol=0.15)  # of 400 draws
    assert starts[0][".lengthscales"].shape == (2,)
    for bad, match in (
        ({".length": (1, 2)}, r"ranges name \['.length'\]; trainable are .variance"),
        ({"penalty": (2.0, 1.0)}, "range of penalty must be two positive ends"),
        ({"penalty": (0.0, 1.0)}, "range of penalty must be two positive ends"),
    ):
        with pytest.raises(ValueError, match=match):
            random_starts(kernel_of_two(), 1.0, 1, ranges=bad)
