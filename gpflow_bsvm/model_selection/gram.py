"""The Gram matrix of a kernel, as NumPy has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel, MultioutputKernel

from ..engine.shared_graph import Compiled


@Compiled
def _gram(kernel: Kernel, X: tf.Tensor) -> tf.Tensor:
    return kernel(X)


def gram_matrix(kernel: Kernel, X: Any, X2: Any = None) -> AnyNDArray:
    """
    :return: k(x, x2), [N, N2].
    :raise TypeError: for what is no kernel of one latent function.
    :raise ValueError: if it is not finite.
    """
    if not isinstance(kernel, Kernel) or isinstance(kernel, MultioutputKernel):
        raise TypeError(
            f"expected a GPflow kernel of one latent function, got {type(kernel).__name__}"
        )
    gram: AnyNDArray = np.asarray(_gram.bind(kernel)(X) if X2 is None else kernel(X, X2))
    if not np.isfinite(gram).all():
        raise ValueError(
            "the kernel overflows or is NaN on X: standardise X and check the kernel's parameters"
        )
    return gram
