"""Models and classifiers for the tests of `gpflow_bsvm.saving`."""

import gpflow
import numpy as np
import tensorflow as tf
from gpflow import kernels as k
from helpers import ard, make_model, randomise

import gpflow_bsvm as gb

OPTIONS = {"loss": "hinge", "penalty": 4.0, "learn_kernel": False, "num_inducing": 5}
LABELS = {
    "strings": np.array(["no", "yes", "perhaps"]),
    "numbers": np.array([3, 7, -1]),
    "floats": np.array([1.0, 2.0, 5.0]),
    "objects": np.array(["no", "yes", "perhaps"], dtype=object),
    "bools": np.array([True, False]),
}


def classifier_of(X, labels):
    number = np.digitize(X[:, 0], [-0.5, 0.5])
    return gb.BSVMClassifier(**OPTIONS).fit(X, labels[np.minimum(number, len(labels) - 1)])


def unwhitened(rows):
    return make_model(rows, whiten=False, num_data=100, num_inducing=5)


class Scaled(k.Kernel):
    """A kernel of one's own."""

    def __init__(self, base, factor=2.0, variance=1.0):
        super().__init__()
        self.base, self._factor = base, factor
        self.variance = gpflow.Parameter(variance, transform=gpflow.utilities.positive())

    def K(self, X, X2=None):
        return self._factor * self.variance * self.base.K(X, X2)

    def K_diag(self, X):
        return self._factor * self.variance * self.base.K_diag(X)


def of_a_kernel_of_ones_own(rows):
    model = make_model(rows, kernel=k.Constant() + Scaled(ard(), 3.0, 0.5), num_inducing=5)
    randomise(model)
    return model


def exported(model, folder):
    gb.export(model, folder)
    return tf.saved_model.load(str(folder))
