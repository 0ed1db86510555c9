"""Derivatives by a Gram matrix become those by a kernel's parameters: against an eager tape."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels as k
from helpers import make_data

from gpflow_bsvm.papers.gold2003.mode import pull_back

pytestmark = pytest.mark.slow

X = make_data(9)[0]
BY_GRAM = np.random.default_rng(0).normal(size=(9, 9))


class Opaque(k.SquaredExponential):
    """With something that no graph can be handed."""

    def __init__(self) -> None:
        super().__init__(1.3, lengthscales=[0.4, 0.7])
        self.thing = object()


def half_fixed():
    kernel = k.SquaredExponential(2.0, lengthscales=[0.7, 1.9]) + k.Constant(0.3)
    gpflow.set_trainable(kernel.kernels[0].variance, False)
    return kernel


def shared():
    one, two = k.Matern32(1.5, lengthscales=0.8), k.Constant(0.1)
    two.variance = one.variance
    return one + two


def bare():
    kernel = k.SquaredExponential()
    kernel.variance = gpflow.Parameter(1.5)
    return kernel


KERNELS = {
    "ard": lambda: k.SquaredExponential(2.0, lengthscales=[0.7, 1.9]) + k.Constant(0.3),
    "product": lambda: k.Linear([0.3, 2.0]) * k.Matern52(0.4) + k.White(0.2),
    "nested": lambda: k.Periodic(k.SquaredExponential(1.2), period=[2.0, 3.0]),
    "columns": lambda: k.Polynomial(degree=3, active_dims=[1]) + k.Matern12(active_dims=[0]),
    "half fixed": half_fixed,
    "shared": shared,
    "no transform": bare,
    "opaque": Opaque,
}


def by_tape(kernel):
    """What is trainable, by name: by the values themselves, which are in the tape."""
    named = gpflow.utilities.parameter_dict(kernel)
    named = {name: p for name, p in named.items() if p.trainable}
    with tf.GradientTape() as tape:
        gram = kernel(X)
    slopes = tape.gradient(gram, [p.unconstrained_variable for p in named.values()], BY_GRAM)
    found = {}
    for (name, p), slope in zip(named.items(), slopes):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(tf.convert_to_tensor(p))
        rate = tape.gradient(value, p.unconstrained_variable)
        found[name] = slope.numpy() / rate.numpy()
    return found


@pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS.keys())
def test_derivatives_are_those_of_an_eager_tape(make):
    kernel = make()
    found, expected = pull_back(kernel, X, BY_GRAM), by_tape(kernel)
    assert found.keys() == expected.keys() and found
    for name, slope in expected.items():
        assert found[name].shape == slope.shape
        np.testing.assert_allclose(found[name], slope, rtol=1e-10, atol=1e-12, err_msg=name)


def test_where_nothing_is_trainable_there_is_nothing():
    kernel = k.SquaredExponential()
    gpflow.set_trainable(kernel, False)
    assert pull_back(kernel, X, BY_GRAM) == {}
