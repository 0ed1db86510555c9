"""What pictures are drawn of."""

import numpy as np
from helpers import make_model

from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge


def two_classes(data):
    model = make_model(data, likelihood=Hinge(bound="exact"), num_inducing=15)
    CAVI().run(model, data)
    return model


def three_classes(data, likelihood=None):
    X, _ = data
    Y = np.digitize(X[:, :1] + 0.5 * np.sin(4 * X[:, 1:]), [-0.5, 0.5]).astype(float)
    likelihood = CrammerSinger(3) if likelihood is None else likelihood
    model = make_model(data, likelihood=likelihood, num_inducing=15, num_latent_gps=3)
    CAVI().run(model, (X, Y))
    return model, (X, Y)
