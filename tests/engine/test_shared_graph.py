"""One trace per structure: what shares a graph, and what must not."""

import copy
import gc
import weakref
from typing import NamedTuple

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from compiled_kernels import SE, X, check
from gpflow import kernels as k

import gpflow_bsvm as gb
from gpflow_bsvm.engine.shared_graph import Compiled

# --- what shares ---------------------------------------------------------------------------------


def test_equal_structures_share_a_trace_and_keep_their_numbers(compiled):
    for kernel in (SE(1.0, 0.5), SE(3.0, 2.0), copy.deepcopy(SE(0.1, 9.0)), SE(2.0, name="other")):
        assert check(compiled, kernel) == 1
    assert not np.allclose(compiled.bind(SE(1.0))(X), compiled.bind(SE(2.0))(X))


def test_any_number_of_rows_shares_a_trace(compiled):
    for num_rows in (7, 1, 4):
        assert check(compiled, SE(), X[:num_rows]) == 1


def test_any_number_of_columns_shares_a_trace(compiled):
    for number in (3, 1, 2):
        kernel = SE(2.0, np.arange(1.0, number + 1)) + k.Linear() * k.Constant(3.0)
        assert check(compiled, kernel, X[:, :number]) == 1
    check(compiled, SE(2.0, [1.0, 2.0], active_dims=[0, 2]))
    assert check(compiled, SE(2.0, [1.0, 2.0], active_dims=[0, 1])) == 3


def test_a_bound_function_follows_the_parameters(compiled):
    kernel = SE(1.0) + k.Periodic(SE(), period=2.0)
    bound = compiled.bind(kernel)
    for value in (1.0, 0.3, 5.0):
        kernel.kernels[0].variance.assign(value)
        kernel.kernels[1].period.assign(value)
        np.testing.assert_allclose(bound(X), kernel(X), rtol=1e-12, atol=1e-12)
    assert compiled.num_traces == 1


def test_trainable_or_not_is_the_same_graph(compiled):
    one, two = SE(1.0), SE(2.0)
    gpflow.set_trainable(two, False)
    check(compiled, one)
    assert check(compiled, two) == 1


def test_gradients_reach_the_parameters(compiled):
    kernel = SE(1.3, [0.5, 1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        through = tf.reduce_sum(compiled.bind(kernel)(X))
        direct = tf.reduce_sum(kernel(X))
    for a, b in zip(
        tape.gradient(through, kernel.trainable_variables),
        tape.gradient(direct, kernel.trainable_variables),
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12)


# --- what must not share -------------------------------------------------------------------------


def with_transform(transform) -> k.Kernel:
    kernel = SE()
    kernel.variance = gpflow.Parameter(1.5, transform=transform)
    return kernel


def with_third_shared(which: int) -> k.Kernel:
    parts = [SE(1.5), SE(0.3), SE(7.0)]
    parts[2].variance = parts[which].variance
    return k.Sum(parts)


def with_shared_variance() -> k.Kernel:
    one, two = SE(1.5), SE(1.5)
    two.variance = one.variance
    return one + two


DIFFERENT = {
    "class": (lambda: SE(), lambda: k.Matern32()),
    "columns": (lambda: SE(active_dims=[0]), lambda: SE(active_dims=[1])),
    "slice": (lambda: SE(active_dims=slice(0, 1)), lambda: SE(active_dims=slice(0, 2))),
    "ard": (lambda: SE(lengthscales=1.0), lambda: SE(lengthscales=[1.0, 2.0, 3.0])),
    "shared parameter": (lambda: SE(1.5) + SE(1.5), with_shared_variance),
    "which parameter is shared": (lambda: with_third_shared(0), lambda: with_third_shared(1)),
    "order": (
        lambda: SE(active_dims=[0]) + k.Matern32(active_dims=[1]),
        lambda: k.Matern32(active_dims=[0]) + SE(active_dims=[1]),
    ),
    "nesting": (lambda: SE() + SE() * SE(), lambda: SE() * SE() + SE()),
    "degree": (lambda: k.Polynomial(degree=2), lambda: k.Polynomial(degree=3)),
    "transform": (
        lambda: with_transform(gpflow.utilities.positive()),
        lambda: with_transform(None),
    ),
    "bound of a transform": (
        lambda: with_transform(gpflow.utilities.positive(lower=0.1)),
        lambda: with_transform(gpflow.utilities.positive(lower=0.2)),
    ),
    "number of parts": (lambda: SE() + SE(), lambda: SE() + SE() + SE()),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_structures_do_not_share(compiled, name):
    one, two = DIFFERENT[name]
    assert check(compiled, one()) == 1
    assert check(compiled, two()) == 2
    assert check(compiled, one()) == 2
    assert check(compiled, two()) == 2


def test_a_shared_parameter_stays_shared(compiled):
    kernel = with_shared_variance()
    bound = compiled.bind(kernel)
    kernel.kernels[0].variance.assign(4.0)
    np.testing.assert_allclose(bound(X), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(np.diag(bound(X)), 8.0, rtol=1e-12)


# --- dtypes and bookkeeping ----------------------------------------------------------------------


def test_dtypes_do_not_share(compiled):
    check(compiled, SE())
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        found = compiled.bind(SE())(X.astype(np.float32))
        assert found.dtype == tf.float32
    assert compiled.num_traces == 2
    assert check(compiled, SE()) == 2
    cast = Compiled(gpflow.utilities.to_default_float)
    assert cast(np.ones(3, int)).dtype == tf.float64
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        assert cast(np.ones(3, int)).dtype == tf.float32


def test_the_oldest_graphs_go_first(compiled, monkeypatch):
    monkeypatch.setattr(gb.engine.shared_graph, "_CACHE_SIZE", 2)
    for degree in (1, 2, 1, 3):  # 2 is the one that goes
        check(compiled, k.Polynomial(degree))
    assert compiled.num_traces == 3
    assert check(compiled, k.Polynomial(1)) == 3
    assert check(compiled, k.Polynomial(2)) == 4


def test_inside_a_graph(compiled):
    kernel = SE(1.0)
    inside = tf.function(lambda X: compiled.bind(kernel)(X))
    for value in (1.0, 3.0):
        kernel.variance.assign(value)
        np.testing.assert_allclose(inside(X), kernel(X), rtol=1e-12)
    check(compiled, SE(2.0))  # a graph first traced inside another one is as good as any
    assert compiled.num_traces == 1


def test_the_first_model_of_a_structure_is_not_kept_alive(compiled):
    kernel = SE()
    check(compiled, kernel)
    reference = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert reference() is None
    assert check(compiled, SE(3.0)) == 1


def test_tuples_travel_whole():
    class Pair(NamedTuple):
        one: tf.Tensor
        two: tuple[tf.Tensor, ...]

    swapped = Compiled(lambda kernel, pair: Pair(pair.two[0], (pair.one, kernel.variance)))
    found = swapped.bind(SE(3.0))(Pair(1.0, (2.0,)))
    assert isinstance(found, Pair)
    assert [float(x) for x in tf.nest.flatten(found)] == [2.0, 1.0, 3.0]


def test_without_modules():
    double = Compiled(lambda x: 2 * x)
    np.testing.assert_array_equal(double(np.ones(3)), 2 * np.ones(3))
    double(np.ones(3))
    assert double.num_traces == 1
