"""Quasi-Newton steps: quadratics, memory, and values that are not finite."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import (
    ard,
    bound_of,
    make_model,
    some_sites,
)

from gpflow_bsvm.engine import quasi_newton
from gpflow_bsvm.engine.quasi_newton import maximise

#: A long valley.
HESSIAN = np.diag(np.geomspace(1, 1e4, 6))


class Quadratic:
    """-(x - best)^T HESSIAN (x - best) / 2 over two variables of 4 and 2 values."""

    def __init__(self, best, start=0.0):
        self.best, self.calls = np.asarray(best, float), 0
        self.variables = [tf.Variable(np.full(4, start)), tf.Variable(np.full(2, start))]

    @property
    def x(self):
        return np.concatenate([v.numpy() for v in self.variables])

    def __call__(self):
        self.calls += 1
        slope = HESSIAN @ (self.best - self.x)
        value = -0.5 * slope @ (self.best - self.x)
        return tf.constant(value), list(tf.split(tf.constant(slope), [4, 2]))


def test_the_maximum_of_a_quadratic():
    f = Quadratic(np.arange(6))
    maximise(f, f.variables, 100)
    np.testing.assert_allclose(f.x, np.arange(6), atol=1e-4)


def test_what_was_learned_of_one_serves_the_next():
    f = Quadratic(np.arange(6) + 2.0)
    inverse = None
    for _ in range(4):
        inverse = maximise(f, f.variables, 10, inverse)
    root = np.sqrt(HESSIAN)
    np.testing.assert_allclose(root @ inverse @ root, np.eye(6), atol=0.05)
    f.best, f.calls = np.ones(6), 0
    maximise(f, f.variables, 5, inverse)
    np.testing.assert_allclose(f.x, 1, atol=1e-3)
    alone = Quadratic(np.ones(6))
    for variable, value in zip(alone.variables, np.split(np.arange(6) + 2.0, [4])):
        variable.assign(value)
    maximise(alone, alone.variables, 5)
    assert abs(alone.x - 1).max() > 0.1


def test_nothing_is_kept_of_too_many_values(monkeypatch):
    monkeypatch.setattr(quasi_newton, "_MOST_VALUES", 5)
    f = Quadratic(np.arange(6))
    inverse = None
    for _ in range(20):
        inverse = maximise(f, f.variables, 10, inverse)
    assert inverse is None
    np.testing.assert_allclose(f.x, np.arange(6), atol=1e-3)


def test_it_stops_where_an_iteration_gains_little():
    f, g = Quadratic(np.arange(6)), Quadratic(np.arange(6))
    maximise(f, f.variables, 100, least_gain=1e9)
    maximise(g, g.variables, 1)
    assert f.calls == g.calls
    np.testing.assert_array_equal(f.x, g.x)


class Rounded(Quadratic):
    """A quadratic whose value and slope have errors like those of single precision."""

    def __call__(self):
        value, (first, second) = super().__call__()
        error = 1e-3 * np.sin(1e6 * self.x)
        return tf.cast(value - 500, tf.float32), [first + error[:4], second + error[4:]]


def test_it_stops_before_it_compares_rounding_errors():
    noise = 500 * np.finfo(np.float32).eps
    f, g = Rounded(np.full(6, 0.1)), Rounded(np.full(6, 0.1))
    maximise(f, f.variables, 100, 0.999 * np.linalg.inv(HESSIAN))
    maximise(g, g.variables, 100, 0.999 * np.linalg.inv(HESSIAN), noise=noise)
    assert f.calls > 50
    assert g.calls == 2
    assert (g.best - g.x) @ HESSIAN @ (g.best - g.x) / 2 < 2 * noise


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_wall_costs_a_shorter_step(rounds):
    """NaN, or no Cholesky factor, beyond x = 3 in the first coordinate; the maximum is before."""
    f = Quadratic([2.9, 1, 1, 1, 1, 1])

    def walled():
        value, gradient = f()
        if f.x[0] > 3 and f.calls % 2:
            raise tf.errors.InvalidArgumentError(None, None, "no Cholesky factor")
        return (np.nan if f.x[0] > 3 else value), gradient

    inverse, values = None, []
    for _ in range(rounds):
        inverse = maximise(walled, f.variables, 30, inverse)
        values.append(float(f()[0]))
    assert values == sorted(values)
    assert f.x[0] <= 3 and values[-1] > -2  # from -6000


def test_where_nothing_is_better_it_stays_and_forgets():
    f = Quadratic(np.zeros(6), start=1.0)
    inverse = maximise(f, f.variables, 10)
    assert inverse is not None
    before = f.x
    inverse = maximise(lambda: (np.nan, f()[1]), f.variables, 10, inverse)
    np.testing.assert_array_equal(f.x, before)
    assert inverse is None


def test_directions_not_seen_yet_have_the_scale_of_the_others():
    """Else the first step along them would be thousands of times too long."""
    f = Quadratic(np.full(6, 2.0))
    inverse = maximise(f, f.variables, 2)
    curvatures = 1 / np.linalg.eigvalsh(inverse)
    assert (curvatures > 100).all() and (curvatures < 2e4).all()


@pytest.mark.slow
def test_a_value_that_is_not_finite_costs_a_shorter_step(data):
    model = make_model(data, kernel=ard())
    bound, sites = bound_of(model, data), some_sites(60)
    start = [variable.numpy() for variable in bound.hyperparameters.variables]
    before, _ = bound.value_and_gradient(sites)
    original, calls = bound.value_and_gradient, []

    def sometimes(*arguments):
        calls.append(1)
        if len(calls) == 2:
            return tf.constant(np.nan, tf.float64), original(*arguments)[1]
        if len(calls) == 4:
            raise tf.errors.InvalidArgumentError(None, None, "no Cholesky factor")
        return original(*arguments)

    maximise(lambda: sometimes(sites), bound.hyperparameters.variables, 5)
    assert len(calls) > 4
    assert original(sites)[0] > before
    assert any(abs(a - b.numpy()).max() > 0 for a, b in zip(start, bound.hyperparameters.variables))


def test_where_nothing_can_be_evaluated_all_stays(data):
    model = make_model(data, kernel=ard())
    bound = bound_of(model, data)
    start = [variable.numpy() for variable in bound.hyperparameters.variables]

    def never():
        raise tf.errors.InvalidArgumentError(None, None, "no Cholesky factor")

    maximise(never, bound.hyperparameters.variables, 5)
    for one, other in zip(start, bound.hyperparameters.variables):
        np.testing.assert_array_equal(one, other)
