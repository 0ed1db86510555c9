"""The random walk and the gradient ascent of Gold & Sollich (2003, 4.1, 4.3), early stopping."""

import math

import gpflow
import numpy as np
import pytest
from helpers import make_data

from gpflow_bsvm.papers.gold2003 import (
    GACV,
    Criterion,
    Gradient,
    LeaveOneOut,
    SampledEvidence,
    optimise,
    random_starts,
    svm_mode,
)
from gpflow_bsvm.papers.gold2003.ascent import ascend
from gpflow_bsvm.papers.gold2003.search import Look
from gpflow_bsvm.papers.gold2003.walk import walk

BEST = np.array([0.7, -0.4, 0.9, 0.5])
WEIGHTS = ((1.0, 1.0, 1.0, 1.0), (1.0, 30.0, 0.1, 5.0))
FAR = np.tile([-9.0, 9.0], (4, 1))
START = np.zeros(4)


@pytest.fixture(scope="module")
def data():
    return make_data(20)


class Bowl:
    """sum_i weight_i d_i^2 + d_i^4, d = x - BEST, in the place of a `Search`."""

    def __init__(self, weights=WEIGHTS[0], values=True, noise=0.0, limit=math.inf):
        self.weights, self.values, self.noise = np.array(weights), values, noise
        self.limit, self.seen, self.path = limit, [], []
        self.random = np.random.default_rng(0)

    def cost(self, x):
        self.seen.append(x)
        if x[0] > self.limit:
            raise ValueError("too large")
        return float(self.weights @ (x - BEST) ** 2 + ((x - BEST) ** 4).sum())

    def slope(self, x):
        return 2 * self.weights * (x - BEST) + 4 * (x - BEST) ** 3

    def look(self, x):
        cost = self.cost(x)
        slope = self.slope(x) + self.noise * self.random.normal(size=4)
        return Look(x, cost if self.values else math.nan, slope, np.full(4, self.noise))

    def scale(self, x):
        return np.ones(4)

    def keep(self, x, cost, slope=None):
        self.path.append((x, cost, slope))


# --- random walk ---------------------------------------------------------------------------------


def walked(search, most=400, bounds=FAR, seed=0):
    return walk(search, START, search.cost(START), bounds, most, np.random.default_rng(seed))


def test_walk_is_greedy_and_comes_near():
    search = Bowl()
    end = walked(search)
    assert end.converged and end.evaluations == len(search.seen) < 400
    np.testing.assert_allclose(end.x, BEST, atol=0.02)
    costs = [cost for _, cost, _ in search.path]
    assert (np.diff(costs) <= 0).all() and costs[-1] == search.cost(end.x) < 1e-3
    place = START  # one parameter moves, from where the walk is
    for x in search.seen[1:-1]:
        assert np.count_nonzero(x - place) == 1
        place = x if search.cost(x) < search.cost(place) else place
    assert not walked(Bowl(), 100).converged and walked(Bowl(), 100).evaluations == 100


class Ones:
    """Steps of one size, in the place of a random generator."""

    def normal(self):
        return 1.0


@pytest.mark.parametrize(("sign", "factor"), [(-1.0, 1.3), (1.0, 1 / 1.3)])
def test_each_parameters_steps_grow_where_they_stay_and_shrink_where_not(sign, factor):
    """In balance where half of them stay (section 4.1)."""
    search, bounds = Bowl(), np.tile([-1e9, 1e9], (4, 1))
    search.cost = lambda x: search.seen.append(x) or float(sign * x[0] + x[1])
    walk(search, START, 0.0, bounds, 20, Ones())
    first, second = (np.array(search.seen)[entry::4, entry] for entry in (0, 1))
    sizes = 0.5 * factor ** np.arange(5)
    np.testing.assert_allclose(np.diff(first, prepend=0.0) if sign < 0 else first, sizes)
    np.testing.assert_allclose(second[:4], 0.5 / 1.3 ** np.arange(4))  # a rate of its own


def test_a_fifth_of_the_steps_stay_as_a_walk_converges():
    """Not half: of a step in one parameter, less than half can gain (docstring of `walk`)."""
    stayed = tried = 0
    for seed in range(10):
        search = Bowl()
        walked(search, seed=seed)
        place, cost = START, search.cost(START)
        for x in search.seen[1:-1]:
            new = Bowl().cost(x)
            stayed, tried = stayed + (new < cost), tried + 1
            place, cost = (x, new) if new < cost else (place, cost)
    assert 0.15 < stayed / tried < 0.3


def test_walks_of_other_seeds_are_others():
    ends = [walked(Bowl(), 20, seed=seed).x for seed in (0, 0, 1)]
    np.testing.assert_array_equal(ends[0], ends[1])
    assert (ends[0] != ends[2]).any()


# --- gradient ascent -----------------------------------------------------------------------------


@pytest.mark.parametrize("has_values", [True, False])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_ascent_comes_near_with_a_rate_for_each(weights, has_values):
    search = Bowl(weights, has_values)
    end = ascend(search, START, FAR, 400)
    assert end.converged and end.evaluations == len(search.seen) < 80
    slopes = np.abs([slope for _, _, slope in search.path])
    assert (slopes[-1] <= np.maximum(0.02 * slopes.max(axis=0), 1e-5)).all()
    # where a weight is small, 2 % of the slope at the start are far away
    np.testing.assert_allclose(end.x, BEST, atol=0.05 if min(weights) == 1 else 0.2)
    if has_values:
        assert (np.diff([cost for _, cost, _ in search.path]) <= 0).all()


@pytest.mark.parametrize("noise", [0.02, 0.5])
def test_ascent_ends_within_the_noise(noise):
    search = Bowl(WEIGHTS[1], values=False, noise=noise)
    end = ascend(search, START, FAR, 400)
    assert end.converged and end.evaluations < 120
    assert np.abs(search.slope(end.x)).max() < 6 * noise


class Told:
    """Slopes (None: a failure) and costs that are told one after the other, from place 0."""

    def __init__(self, slopes, costs=None):
        self.slopes, self.costs = slopes, costs or [math.nan] * len(slopes)
        self.seen, self.path = [], []

    def look(self, x):
        number = len(self.seen)
        self.seen.append(x)
        if self.slopes[number] is None:
            raise ValueError("too large")
        return Look(x, self.costs[number], np.array(self.slopes[number]), np.zeros(2))

    def scale(self, x):
        return np.ones(2)

    def keep(self, x, cost, slope):
        self.path.append(x)

    def places(self):
        ascend(self, np.zeros(2), FAR[:2], len(self.slopes))
        return np.array(self.seen), np.array(self.path)


def test_rates_grow_while_slopes_do_not_decline():
    seen, path = Told([(-1.0, 2.0)] * 7).places()
    sizes = np.minimum(0.2 * 1.5 ** np.arange(6), 1.0)  # the longest
    np.testing.assert_allclose(np.diff(seen, axis=0), sizes[:, None] * [1, -1])
    np.testing.assert_array_equal(path, seen)
    seen, _ = Told([(1.0, 2.0), (0.7, 1.4), (0.1, 0.1)]).places()  # they do
    np.testing.assert_allclose(np.diff(seen, axis=0), [[-0.2, -0.2], [-0.14, -0.14]])


@pytest.mark.parametrize("fails", [True, False])
def test_a_step_is_discarded_that_fails_or_makes_it_worse(fails):
    slopes = [(-1.0, 2.0), None if fails else (-1.0, 2.0), (-1.0, 2.0), (-1.0, 2.0)]
    seen, path = Told(slopes, [1.0, math.nan if fails else 1.1, 0.9, 0.8]).places()
    expected = np.array([0, 0.2, 0.2 * 0.4, 0.08 + 0.08 * 1.5])
    np.testing.assert_allclose(seen, expected[:, None] * [1, -1])
    np.testing.assert_array_equal(path, seen[[0, 2, 3]])


def test_the_rate_to_blame_decreases_most():
    slopes = [(1.0, 1.0), (1.0, 3.0), (-0.6, 1.0), (-0.6, -1.0), (0.0, 0.0)]
    seen, path = Told(slopes).places()
    place = np.array([-0.14, -0.08])  # of rates 0.2 * (0.7, 0.4): the second has increased sharply
    np.testing.assert_allclose(seen[1:3], [[-0.2, -0.2], place])
    rates = place * [-0.7, -1.5]  # the first was a bit too long
    np.testing.assert_allclose(seen[3], place - rates * [-0.6, 1.0])
    rates *= [0.7, 0.4]  # the second has turned round
    np.testing.assert_allclose(seen[4], place - rates * [-0.6, 1.0])
    np.testing.assert_array_equal(path, seen[[0, 2, 4]])


def test_steps_into_the_impossible_are_discarded():
    search = Bowl(limit=BEST[0] + 1e-3)  # just behind the best place
    np.testing.assert_allclose(ascend(search, START, FAR, 400).x, BEST, atol=0.05)
    with pytest.raises(ValueError, match="too large"):
        ascend(Bowl(limit=-1.0), START, FAR, 400)


def test_an_ascent_that_knows_nothing_stays():
    search = Bowl(values=False, noise=math.inf)
    search.random = np.random.default_rng(0)
    search.look = lambda x: Look(x, math.nan, np.zeros(4), np.full(4, math.inf))
    end = ascend(search, START, FAR, 400)
    assert not end.converged and end.evaluations == 1
    np.testing.assert_array_equal(end.x, START)


def test_no_search_leaves_its_bounds():
    near = np.tile([-0.3, 0.3], (4, 1))
    for find in (lambda search: walked(search, 400, near), lambda s: ascend(s, START, near, 400)):
        search = Bowl()
        end = find(search)
        assert np.abs(search.seen).max() <= 0.3 and end.converged
        np.testing.assert_allclose(end.x, 0.3 * np.sign(BEST), atol=1e-3)


# --- as methods of optimise ----------------------------------------------------------------------


def kernel_of_two():
    return gpflow.kernels.SquaredExponential(1.0, lengthscales=[1.0, 1.0])


class Hill(Criterion):
    """-sum_i (log v_i - BEST_i)^2 of variance, lengthscales and penalty, whatever the data."""

    greater_is_better = True
    has_gradient = True

    def __init__(self, values=True):
        self.values, self.calls = values, 0

    @property
    def has_value(self):
        return self.values

    def _off(self, kernel, penalty):
        self.calls += 1
        parts = (kernel.variance.numpy(), kernel.lengthscales.numpy(), penalty)
        v = np.concatenate([np.reshape(part, -1) for part in parts])
        return v, np.log(v) - BEST

    def __call__(self, kernel, data, penalty):
        return -float((self._off(kernel, penalty)[1] ** 2).sum())

    def gradient(self, kernel, data, penalty):
        v, off = self._off(kernel, penalty)
        slopes = -2 * off / v
        value = -float((off**2).sum()) if self.values else math.nan
        return Gradient(value, {".variance": slopes[0], ".lengthscales": slopes[1:3]}, slopes[3])


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("method", ["random-walk", "gradient-ascent"])
def test_methods_of_optimise(data, method):
    kernel = kernel_of_two()
    found = optimise(Hill(), kernel, data, 1.0, method=method, max_evaluations=150)
    assert found.best.value > -1e-2
    np.testing.assert_allclose(np.log(kernel.variance.numpy()), BEST[0], atol=0.05)
    np.testing.assert_allclose(np.log(kernel.lengthscales.numpy()), BEST[1:3], atol=0.05)
    np.testing.assert_allclose(np.log(found.penalty), BEST[3], atol=0.05)
    near = optimise(
        Hill(), kernel_of_two(), data, 1.0, method=method, reach=1.2, max_evaluations=150
    )
    assert set(near.best.at_edge) == {".variance", ".lengthscales", "penalty"}
    np.testing.assert_allclose(near.penalty, 1.2, rtol=1e-3)


@pytest.mark.drill
@pytest.mark.slow
def test_equal_starts_walk_their_own_ways(data):
    how = {"method": "random-walk", "max_evaluations": 9, "starts": [{}]}
    one, again = (optimise(Hill(), kernel_of_two(), data, 1.0, **how) for _ in range(2))
    first = [optimum.value for optimum in one.optima]
    assert first[0] != first[1]
    assert first == [optimum.value for optimum in again.optima]


def test_slopes_of_the_path_are_logarithmic_but_of_the_penalty(data):
    criterion, how = Hill(values=False), {"method": "gradient-ascent", "max_evaluations": 2}
    found = optimise(criterion, kernel_of_two(), data, 2.0, **how)
    assert np.isnan(found.best.value) and found.best.evaluations == 2 and not found.best.converged
    assert criterion.calls == 3  # the last for its warnings
    place = found.best.path[0]
    np.testing.assert_allclose(place.slopes[".variance"], 2 * BEST[0])
    np.testing.assert_allclose(place.slopes[".lengthscales"], 2 * BEST[1:3])
    np.testing.assert_allclose(place.slopes["penalty"], -2 * (np.log(2.0) - BEST[3]) / 2.0)
    first, second = (place.parameters for place in found.best.path)
    np.testing.assert_allclose(second["penalty"] - 2.0, -0.2 * 2.0)  # in the penalty itself
    np.testing.assert_allclose(np.log(second[".variance"] / first[".variance"]), 0.2)


@pytest.mark.slow
def test_walk_on_a_step_function_ends(data):
    kernel = gpflow.kernels.SquaredExponential(1.0)
    found = optimise(LeaveOneOut(), kernel, data, 1.0, method="random-walk", max_evaluations=90)
    assert found.best.converged and found.best.evaluations < 90


# --- early stopping ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", ["random-walk", "gradient-ascent", "Nelder-Mead"])
def test_the_least_validation_error_of_the_path_counts(data, method):
    X, Y = make_data(200, seed=5)
    kernel = kernel_of_two()
    how = {"method": method, "max_evaluations": 12, "starts": [{"penalty": 3.0}]}
    found = optimise(Hill(), kernel, data, 0.02, validation=(X, Y), **how)
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
            optimise(Hill(), kernel_of_two(), data, 1.0, validation=validation)


def test_gradients_alone_need_an_ascent_and_a_judge(data):
    for criterion in (Hill(values=False), SampledEvidence()):
        name = type(criterion).__name__
        with pytest.raises(ValueError, match=f"{name} has gradients only: use method="):
            optimise(criterion, kernel_of_two(), data, 1.0, method="random-walk")
        how = {"method": "gradient-ascent", "starts": [{}]}
        with pytest.raises(ValueError, match="which of 2 starts ended best"):
            optimise(criterion, kernel_of_two(), data, 1.0, **how)
    with pytest.raises(ValueError, match="LeaveOneOut has no gradient"):
        optimise(LeaveOneOut(), kernel_of_two(), data, 1.0, method="gradient-ascent")
    with pytest.raises(ValueError, match="seed must be at least 0"):
        optimise(Hill(), kernel_of_two(), data, 1.0, seed=-1)


def test_starts_of_ranges():
    ranges = {".variance": (0.5, 4.0), ".lengthscales": (1.0, 9.0), "penalty": (0.1, 0.9)}
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
