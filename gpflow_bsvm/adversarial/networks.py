"""Networks as targets: any function of a tensor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from .targets import Target, both

#: Rows of probabilities may miss 1 by this: single precision, and many classes.
_ROW_SUM = 1e-4


class NetworkTarget(Target):
    """A function of a tensor X [N, ...], such as a Keras network: probabilities or logits."""

    def __init__(self, network: Callable[[tf.Tensor], tf.Tensor], *, logits: bool = False) -> None:
        """
        :param network: X [N, ...] -> [N, C]; or [N, 1], of p(y = 1) of two classes.
        :param logits: whether probabilities are the softmax (of one column: the logistic function)
            of what it returns.
        """
        self._network, self._logits = network, logits

    def probabilities(self, X: tf.Tensor) -> tf.Tensor:
        """
        See `Target`.

        :raise TypeError: if the network returns no tensor.
        :raise ValueError: for another shape, or rows that do not sum to 1.
        """
        return tf.nn.softmax(self._outputs(X)) if self._logits else self._outputs(X)

    def log_density(self, X: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
        """See `Target`."""
        if not self._logits:
            return super().log_density(X, label)
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(label, self._outputs(X))

    def _outputs(self, X: tf.Tensor) -> tf.Tensor:
        outputs = self._network(X)
        if not tf.is_tensor(outputs):
            raise TypeError(
                f"the network returns {type(outputs).__name__}, which has no gradient by X: give "
                "a function that makes a tensor of a tensor, such as a Keras network itself "
                "(not its `predict`)"
            )
        if len(outputs.shape) != 2:
            raise ValueError(f"the network must return [N, C], got shape {outputs.shape}")
        if self._logits:
            single = outputs.shape[1] == 1
            return tf.concat([tf.zeros_like(outputs), outputs], 1) if single else outputs
        return _check_rows(both(outputs))


def _check_rows(p: tf.Tensor) -> tf.Tensor:
    """:raise ValueError: (outside of a graph) for rows that are no probabilities."""
    if tf.executing_eagerly() and len(p):
        off = np.abs(p.numpy().sum(axis=1) - 1).max()
        if not (off <= _ROW_SUM and p.numpy().min() >= -_ROW_SUM):  # NaN fails too
            raise ValueError(
                "the network's rows are no probabilities (one misses the sum 1 by "
                f"{off:.3g}); of logits give NetworkTarget(network, logits=True)"
            )
    return p
