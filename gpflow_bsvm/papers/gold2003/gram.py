"""Gram matrices: of a kernel, or given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from gpflow.utilities import parameter_dict

from ...data.checks import check_inputs
from ...engine.hyperparameters import planned
from ...engine.shared_graph import Compiled


@partial(Compiled, rebuilds=True)
def _pulled_back(
    rebuild: Any, values: list[tf.Tensor], X: tf.Tensor, by_gram: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """
    :param by_gram: [1, N, N], so that the graph is of any N.
    :return: derivatives by the values of what the plan, the last of the modules, learns.
    """
    plan = rebuild(values)[-1]
    mine = plan.trainable(values)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(mine)
        gram = rebuild(list(plan.merge(values, mine)))[0](X)
    zero = tf.UnconnectedGradients.ZERO
    slopes = tape.gradient(gram, mine, tf.cast(by_gram[0], gram.dtype), zero)
    return tuple(_by_value(how[1], *pair) for how, pair in zip(plan.priors, zip(mine, slopes)))


def _by_value(transform: Any, unconstrained: tf.Tensor, slope: tf.Tensor) -> tf.Tensor:
    """:return: the derivative by the value, from that by the unconstrained variable."""
    if transform is None:
        return slope
    return slope * tf.exp(-transform.forward_log_det_jacobian(tf.identity(unconstrained), 0))


def pull_back(kernel: Kernel, X: Any) -> Callable[[Any], dict[str, AnyNDArray]]:
    """
    :return: a function of derivatives by k(X, X), [N, N], to those by the (constrained) value of
        what is trainable in the kernel, by GPflow's names.
    """
    named, X = trainable(kernel), check_inputs(X)
    chosen, plan = planned(list({id(p): p for p in named.values()}.values()), kernel)
    bound = _pulled_back.bind(kernel, plan)

    def slopes(by_gram: Any) -> dict[str, AnyNDArray]:
        found = bound(X, tf.convert_to_tensor(by_gram)[None])
        by_id = {id(p): np.asarray(slope) for p, slope in zip(chosen, found)}
        return {name: by_id[id(p)] for name, p in named.items()}

    return slopes


def trainable(kernel: Kernel) -> dict[str, Parameter]:
    """:return: parameters by GPflow's names."""
    return {name: p for name, p in parameter_dict(kernel).items() if p.trainable}


def check_gram(gram: Any, num_rows: int) -> AnyNDArray:
    """
    :return: the Gram matrix, [N, N], exactly symmetric.
    :raise ValueError: for one of another size, not finite, not symmetric (beyond rounding), or with
        a negative diagonal.
    """
    K: AnyNDArray = np.asarray(gram, dtype=np.float64)
    if K.shape != (num_rows, num_rows):
        raise ValueError(f"the Gram matrix of {num_rows} labels must be square, got {K.shape}")
    if not np.isfinite(K).all():
        raise ValueError("the Gram matrix holds NaN or infinity")
    asymmetry = np.abs(K - K.T).max()
    if asymmetry > 1e-6 * np.abs(K).max():
        row, column = np.unravel_index(np.abs(K - K.T).argmax(), K.shape)
        raise ValueError(
            f"the Gram matrix is not symmetric: entries ({row}, {column}) and ({column}, {row}) "
            f"differ by {asymmetry:.3g}; use (K + K.T) / 2 if that is rounding"
        )
    if K.diagonal().min() < 0:
        raise ValueError("the Gram matrix has a negative diagonal, as no kernel has")
    return (K + K.T) / 2


def check_positive(gram: AnyNDArray) -> None:
    """:raise ValueError: for a Gram matrix that is not positive semidefinite, beyond rounding."""
    jitter = 1e-8 * len(gram) * gram.diagonal().max()
    try:
        np.linalg.cholesky(gram + (jitter + np.finfo(float).tiny) * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(gram)[0]
        raise ValueError(
            f"the Gram matrix is not positive semidefinite, as a kernel's is: an eigenvalue is "
            f"{least:.3g}"
        ) from None
