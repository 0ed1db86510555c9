"""`DeepKernel` with a user's inner kernel."""

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras

from gpflow_bsvm.deep import DeepKernel


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
