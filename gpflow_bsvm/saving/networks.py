"""
The weights of Keras networks in a file. Layers are not: Keras imports modules and calls functions
that a description of layers names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from ..deep.network import normalised


def names_of(network: Any) -> list[str]:
    """:return: names of its weights, without those of layers, which Keras numbers on creation."""
    return [weight.name.rsplit("/", 1)[-1].partition(":")[0] for weight in network.weights]


def with_weights(network: Any, names: Sequence[str], weights: Sequence[AnyNDArray]) -> Any:
    """
    :param network: the user's, None if there is none.
    :param names: of the weights in the file, in their order.
    :return: the network with these weights; it gets a final normalization if the one in the file
        had one, as those of `gpflow_bsvm.deep.hybrid` do.
    :raise ValueError: without a network, or if names or shapes of its weights differ.
    """
    if network is None:
        raise ValueError(
            "it holds the weights of a network, and no layers: give the network, as in "
            "gpflow_bsvm.load(path, network=...)"
        )
    if [*names] == [*names_of(network), "moving_mean", "moving_variance"]:
        F = np.zeros([1, network.output_shape[-1]])
        network = normalised(network, F, tuple(network.input_shape[1:]))
    here = [f"{n} {list(w.shape)}" for n, w in zip(names_of(network), network.weights)]
    there = [f"{n} {list(w.shape)}" for n, w in zip(names, weights, strict=True)]
    if here != there:
        raise ValueError(
            f"it holds a network with weights {', '.join(there)}, and the network here has "
            f"{', '.join(here) or 'none yet: build it first'}"
        )
    network.set_weights(weights)
    return network
