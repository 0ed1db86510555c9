"""A q with random natural parameters."""

import numpy as np
import tensorflow as tf

from gpflow_bsvm.engine.natural import (
    Natural,
)


def random_natural(rng, num_latents: int, size: int) -> Natural:
    root = rng.normal(size=(num_latents, size, size))
    P = root @ np.swapaxes(root, -1, -2) + np.eye(size)
    return Natural(tf.constant(rng.normal(size=(num_latents, size))), tf.constant(P))
