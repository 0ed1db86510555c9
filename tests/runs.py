"""All ways to fit a model."""

import numpy as np
import tensorflow as tf

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, SVI


def dataset(X, Y):
    """As one batch, of any shape, without TensorFlow's own checks."""
    types = tuple(tf.TensorSpec(None, np.asarray(part).dtype) for part in (X, Y))
    return tf.data.Dataset.from_generator(lambda: iter([(X, Y)]), output_signature=types)


RUNS = {
    "CAVI": lambda model, data: CAVI(max_steps=3).run(model, data),
    "SVI": lambda model, data: SVI(max_steps=3).run(model, data),
    "dataset": lambda model, data: SVI(max_steps=3).run(model, dataset(*data)),
    "natgrad_step": lambda model, data: model.natgrad_step(data),
    "fit": lambda model, data: gb.fit(model, data),
}
