"""What the engine asks of a kernel that holds a network: its weights, and how it is to compute."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import tensorflow as tf


class Network(Protocol):
    """
    Any module with these, such as `gpflow_bsvm.deep.DeepKernel`.

    :ivar training: whether it computes as in training: dropout drops, batch normalisation takes
        the moments of the batch and remembers them.
    """

    training: bool

    def learned_weights(self) -> list[tf.Variable]:
        """:return: weights but for those of frozen layers."""

    def all_weights(self) -> list[tf.Variable]:
        """:return: all that it remembers, moving averages and the like too."""

    def losses(self) -> list[tf.Tensor]:
        """:return: the terms that its regularisers add to a loss, [] each, for the latest rows."""


def networks_in(*modules: Any) -> list[Network]:
    """:return: the networks that these modules hold."""
    parts = [p for module in modules for p in (module, *getattr(module, "submodules", ()))]
    return [part for part in dict.fromkeys(parts) if hasattr(part, "learned_weights")]


@contextlib.contextmanager
def in_training(networks: Sequence[Network]) -> Iterator[None]:
    """The networks compute as in training, in what is traced inside."""
    for network in networks:
        network.training = True
    try:
        yield
    finally:
        for network in networks:
            network.training = False


def as_variables(variables: Sequence[Any]) -> list[tf.Variable]:
    """:return: the variables as TensorFlow has them; those of Keras 3 hold one."""
    return [v if isinstance(v, tf.Variable) else v.value for v in variables]
