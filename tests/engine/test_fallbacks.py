"""What shares no graph with others: code that is no library's, bare variables, layers, tensors."""

import functools
import operator
import os

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from compiled_kernels import IN_ONE_FIT, SE, X, check
from gpflow import kernels as k
from helpers import make_data, make_model

from gpflow_bsvm.inference import CAVI


class Warped(k.SquaredExponential):
    """A kernel of warped inputs, the warping being any Python object."""

    def __init__(self, warp):
        super().__init__(1.3)
        self.warp = warp

    def K(self, X, X2=None):
        return super().K(self.warp(X), None if X2 is None else self.warp(X2))


class Scaler:
    def __init__(self, factor):
        self.factor = factor

    def times(self, X):
        return self.factor * X

    __call__ = times


@IN_ONE_FIT
def test_functions_are_told_apart_by_identity(compiled):
    one, two = Warped(lambda X: X), Warped(lambda X: 3 * X)
    assert check(compiled, one) == 1
    assert check(compiled, two) == 2
    assert check(compiled, Warped(one.warp)) == 2


def test_methods_partials_and_callables(compiled):
    small, large = Scaler(0.5), Scaler(2.0)
    warps = [
        small.times,
        large.times,
        functools.partial(operator.mul, 0.5),
        functools.partial(operator.mul, 3.0),
        small,
        large,
        tf.identity,
    ]
    for warp in warps:
        check(compiled, Warped(warp))


def test_classes_as_attributes_are_told_apart(compiled):
    def make(factor):
        class Local:
            @staticmethod
            def __new__(cls, X):
                return factor * X

        return Local

    for factor in (1.0, 4.0):  # two classes of one name
        check(compiled, Warped(make(factor)))


class Power(k.Kernel):
    """|x|^exponent-dependent kernel, its exponent a plain Python attribute."""

    def __init__(self, exponent: float) -> None:
        super().__init__()
        self.exponent = exponent
        self.variance = gpflow.Parameter(2.0, transform=gpflow.utilities.positive())

    def K(self, X, X2=None):
        X2 = X if X2 is None else X2
        return self.variance * tf.pow(1 + tf.abs(tf.matmul(X, X2, transpose_b=True)), self.exponent)

    def K_diag(self, X):
        return tf.linalg.diag_part(self.K(X))


@pytest.mark.parametrize("exponents", [(1.0, 2.0), (1, 1.5), (np.float64(0.5), np.float64(0.7))])
@IN_ONE_FIT
def test_a_changed_attribute_is_another_structure(compiled, exponents):
    kernel = Power(exponents[0])
    check(compiled, kernel)
    kernel.exponent = exponents[1]
    check(compiled, kernel)
    kernel.exponent = exponents[0]
    assert check(compiled, kernel) == 2


class RawVariable(Power):
    def __init__(self, exponent: float = 1.0) -> None:
        super().__init__(exponent)
        self.scale = tf.Variable(1.5, dtype=tf.float64)

    def K(self, X, X2=None):
        return self.scale * super().K(X, X2)


@IN_ONE_FIT
def test_raw_variables_are_followed(compiled):
    one, two = RawVariable(), RawVariable()
    bound = compiled.bind(one)
    for value in (0.5, 2.5):
        one.scale.assign(value)
        one.variance.assign(value + 1)
        check(compiled, one)
        np.testing.assert_allclose(bound(X), one(X), rtol=1e-12)
    assert compiled.num_traces == 1
    assert check(compiled, two) == 2  # its own variables, its own graph
    two.scale.assign(7.0)
    check(compiled, one)
    check(compiled, two)


@IN_ONE_FIT
def test_a_changed_attribute_beside_a_raw_variable(compiled):
    kernel = RawVariable(1.0)
    check(compiled, kernel)
    kernel.exponent = 2.0
    check(compiled, kernel)
    kernel.variance = gpflow.Parameter(0.3)
    check(compiled, kernel)
    kernel.scale = tf.Variable(0.1, dtype=tf.float64)
    check(compiled, kernel)


class Deep(k.SquaredExponential):
    """A kernel on the outputs of a Keras layer."""

    def __init__(self, layer) -> None:
        super().__init__()
        self.layer = layer

    def K(self, X, X2=None):
        return super().K(self.layer(X), None if X2 is None else self.layer(X2))


def keras_kernel() -> Deep:
    layers = gpflow.keras.tf_keras.layers
    layer = layers.Dense(2, dtype="float64", kernel_initializer="ones", activation="tanh")
    layer.build((None, 3))
    return Deep(layer)


@IN_ONE_FIT
def test_layers_are_followed(compiled):
    kernel, other = keras_kernel(), keras_kernel()
    for factor in (1.0, 0.3):
        kernel.layer.kernel.assign(factor * np.ones((3, 2)))
        check(compiled, kernel)
        check(compiled, other)
    assert compiled.num_traces == 2


@pytest.mark.slow
def test_a_whole_fit_with_a_layer_in_the_kernel():
    data = make_data(60, 3)
    model = make_model(data, kernel=keras_kernel())
    history = CAVI(tol=1e-8).run(model, data)
    np.testing.assert_allclose(history.elbo[-1], model.elbo(data), rtol=1e-9)
    model.kernel.layer.kernel.assign(np.random.default_rng(0).normal(size=(3, 2)))
    history = CAVI(tol=1e-8).run(model, data)
    np.testing.assert_allclose(history.elbo[-1], model.elbo(data), rtol=1e-9)


class Locked(Power):
    """A kernel with an attribute that cannot be hashed, walked or copied."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.tags = {"a", "b"}
        self.file = open(os.devnull)  # noqa: SIM115


@IN_ONE_FIT
def test_attributes_that_cannot_be_walked(compiled):
    kernel = Locked()
    check(compiled, kernel)
    kernel.variance.assign(5.0)
    assert check(compiled, kernel) == 1
    kernel.file.close()


@IN_ONE_FIT
def test_a_module_inside_itself(compiled):
    kernel = Power(1.0)
    kernel.me = kernel
    check(compiled, kernel)
    kernel.variance.assign(5.0)
    assert check(compiled, kernel) == 1


@IN_ONE_FIT
def test_a_parameter_of_open_shape(compiled):
    def points(rows):
        kernel = Power(1.0)
        kernel.points = gpflow.Parameter(X[:rows], shape=[None, 3])
        return kernel

    for rows in (2, 5):
        check(compiled, points(rows))


@IN_ONE_FIT
def test_tensors_as_attributes_are_constants_of_the_structure(compiled):
    one, two = Warped(lambda X: X), Warped(lambda X: X)
    shift = two.warp = one.warp
    assert shift is one.warp
    one.constant, two.constant = tf.constant(1.0), tf.constant(2.0)
    check(compiled, one)
    assert check(compiled, two) == 2
    two.constant = tf.constant(1.0)
    assert check(compiled, two) == 2


@pytest.mark.slow
@IN_ONE_FIT
def test_a_kernel_may_branch_on_a_tensor(compiled):
    """Then, and only then, AutoGraph rewrites its source."""

    class Branching(SE):
        def K(self, X, X2=None):
            if tf.reduce_sum(X) > 1e6:
                return tf.ones_like(SE.K(self, X, X2))
            return SE.K(self, X, X2)

    np.testing.assert_allclose(compiled.bind(Branching())(X), SE()(X), rtol=1e-12)
    np.testing.assert_allclose(compiled.bind(Branching())(X + 1e6), np.ones((7, 7)))
