"""What the engine asks of a kernel that holds a network: its weights, and how it is to compute."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf


def networks_in(*modules: Any) -> list[Any]:
    """
    :return: the networks that these modules hold: whatever has `training`, `learned_weights`,
        `all_weights` and `losses` as a `gpflow_bsvm.deep.DeepKernel`.
    """
    parts = [p for module in modules for p in (module, *getattr(module, "submodules", ()))]
    return [part for part in dict.fromkeys(parts) if hasattr(part, "learned_weights")]


@contextlib.contextmanager
def in_training(networks: Sequence[Any]) -> Iterator[None]:
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
