"""Wistuba and Rawat (2018) as they ran it: Adam at 5e-4 for 1000 epochs, everything learned.

Kernel (one lengthscale), inducing points and q at once, of GPflow's `SVGP` as of this package's
`BSVM`, which is one. The paper prints no size of its batches: here 100 rows. "adam-bsvm-published"
is the paper's own objective, "adam-bsvm" the bound of this package, "adam-svgp" GPflow's RobustMax.
"""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras
from gpflow.likelihoods import Likelihood, MultiClass

from gpflow_bsvm.compare.baselines import KernelSettings
from gpflow_bsvm.compare.gp_baselines import make_kernel
from gpflow_bsvm.compare.protocol import Fold
from gpflow_bsvm.likelihoods import CrammerSinger, OneVsRest
from gpflow_bsvm.models import BSVM
from gpflow_bsvm.prediction import predict_probabilities

from ._harness import num_classes, processor_seconds, scored

RATE, EPOCHS, BATCH = 5e-4, 1000, 100
#: By method: the model, and its likelihood of so many classes.
MODELS: dict[str, tuple[type, Callable[[int], Likelihood]]] = {
    "adam-bsvm-published": (BSVM, lambda C: CrammerSinger(C, bound="wistuba2018")),
    "adam-bsvm": (BSVM, CrammerSinger),
    "adam-one-vs-rest": (BSVM, OneVsRest),
    "adam-svgp": (gpflow.models.SVGP, MultiClass),
}


def measured(method: str, fold: Fold, kernel: KernelSettings) -> dict:
    """:return: cells of the row; "first_seconds" of two steps, which trace."""
    cls, likelihood = MODELS[method]
    about = {"num_latent_gps": num_classes(fold), "num_data": len(fold.y)}
    covariance = make_kernel(kernel, fold.X.shape[1])
    model = cls(covariance, likelihood(num_classes(fold)), fold.Z.copy(), **about)
    start = gpflow.utilities.deepcopy(gpflow.utilities.parameter_dict(model))
    ascend = _ascent(model, fold)
    first = processor_seconds(ascend, 1)
    gpflow.utilities.multiple_assign(model, start)
    seconds = processor_seconds(ascend, EPOCHS)
    P = np.asarray(
        predict_probabilities(model, fold.X_test)
        if cls is BSVM
        else model.predict_y(fold.X_test)[0]
    )
    scores = scored(fold, P / P.sum(axis=1, keepdims=True))
    return {**scores, "seconds": seconds, "first_seconds": first}


def _ascent(model: gpflow.models.SVGP, fold: Fold) -> Callable[[int], None]:
    """:return: so many epochs of Adam, from where the model is, with moments of their own."""
    X, Y = tf.constant(fold.X), tf.constant(fold.y[:, None].astype(float))
    adam = tf_keras.optimizers.Adam(RATE)
    adam.build(model.trainable_variables)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def step(index: tf.Tensor) -> None:
        batch = tf.gather(X, index), tf.gather(Y, index)
        adam.minimize(lambda: model.training_loss(batch), model.trainable_variables)

    def ascend(epochs: int) -> None:
        random = np.random.default_rng(fold.number)
        for variable in adam.variables:
            if variable is not adam.learning_rate:
                variable.assign(tf.zeros_like(variable))
        for _ in range(epochs):
            order = random.permutation(len(fold.y))
            for begin in range(0, len(order), BATCH):
                step(tf.constant(order[begin : begin + BATCH]))

    return ascend
