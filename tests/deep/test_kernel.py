"""`DeepKernel` with a user's inner kernel."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import SharedIndependentInducingVariables
from gpflow.keras import tf_keras
from gpflow.kernels import SharedIndependent, SquaredExponential
from helpers import make_data, make_model, randomise, state

from gpflow_bsvm.deep import DeepKernel
from gpflow_bsvm.deep.kernel import FeaturePoints
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.models import BSVM


class Growing(gpflow.kernels.Stationary):
    """A user's kernel whose variance is not constant."""

    def K(self, X, X2=None):
        left, right = (tf.reduce_sum(tf.square(x), -1) for x in (X, X if X2 is None else X2))
        return left[:, None] * right[None] * self.variance

    def K_diag(self, X):
        return tf.reduce_sum(tf.square(X), -1) ** 2 * self.variance


def test_variances_that_are_not_constant_are_those_of_the_outputs():
    X = np.random.default_rng(0).normal(size=(5, 3))
    tf_keras.utils.set_random_seed(1)
    network = tf_keras.Sequential([tf_keras.layers.Dense(2, dtype="float64")])
    network.build((None, 3))
    kernel = DeepKernel(network, Growing())
    np.testing.assert_allclose(kernel(X, full_cov=False), np.diag(kernel(X)))


def widening():
    """A network from 2 columns to 4."""
    tf_keras.utils.set_random_seed(1)
    dense = tf_keras.layers.Dense(4, activation="tanh", dtype="float64")
    return tf_keras.Sequential([tf_keras.layers.InputLayer((2,)), dense])


def test_active_dims_are_columns_of_the_outputs():
    X, Y = make_data(20)
    inner = SquaredExponential(active_dims=[3]) + gpflow.kernels.Linear(active_dims=[0])
    kernel = DeepKernel(widening(), inner)
    F = kernel.features_of(X)
    deep = BSVM(kernel, Hinge(bound="augmented"), X[:8])
    plain = make_model((F, Y), kernel=inner)
    for model, rows in ((deep, X), (plain, F)):
        CAVI(max_steps=1).run(model, (rows, Y))
    for one, two in zip(state(deep), state(plain)):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-8)
    with pytest.raises(
        ValueError, match=r"active_dims up to 4, but the network's output has .* 3$"
    ):
        DeepKernel(widening(), gpflow.kernels.Constant() + SquaredExponential(active_dims=[4]))


@pytest.mark.parametrize("shape", [2, np.int64(2), (2,), np.array([2])])
def test_the_shape_of_a_row_in_any_form(shape):
    assert DeepKernel(widening(), SquaredExponential(), shape).input_shape == (2,)


@pytest.mark.parametrize("shape", [0, -2, 2.0, "2", True, (None, 2)])
def test_what_is_no_shape_of_a_row(shape):
    with pytest.raises(ValueError, match=r"input_shape\[\d\] must be a"):
        DeepKernel(tf_keras.Sequential([tf_keras.layers.Dense(4)]), SquaredExponential(), shape)


def test_several_outputs_of_a_kernel_with_active_dims():
    kernel = DeepKernel(widening(), SquaredExponential(active_dims=[3]))
    X, _ = make_data(6)
    points = SharedIndependentInducingVariables(FeaturePoints(kernel.features_of(X[:3])))
    model = BSVM(SharedIndependent(kernel, 2), Hinge(), points)
    randomise(model)
    _, variance = model.predict_f(X)
    _, covariance = model.predict_f(X, full_cov=True)
    np.testing.assert_allclose(np.einsum("lnn->nl", covariance), variance, rtol=1e-8)
