"""
Keras networks in a file: layers from a fixed list, described by numbers and a few known words.

Keras imports modules and calls functions that a configuration names, so a configuration is checked
completely before Keras sees it.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from ..deep.network import is_keras_3, keras_of, normalised

_LAYERS = (
    "Activation Add AveragePooling1D AveragePooling2D AveragePooling3D Average BatchNormalization "
    "Bidirectional Concatenate Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Cropping1D "
    "Cropping2D Dense DepthwiseConv2D Dot Dropout ELU Embedding Flatten GaussianDropout "
    "GaussianNoise GlobalAveragePooling1D GlobalAveragePooling2D GlobalMaxPooling1D "
    "GlobalMaxPooling2D GroupNormalization GRU InputLayer LayerNormalization LeakyReLU LSTM "
    "Masking Maximum MaxPooling1D MaxPooling2D MaxPooling3D Minimum Multiply Normalization Permute "
    "PReLU ReLU RepeatVector Rescaling Reshape SeparableConv1D SeparableConv2D SimpleRNN Softmax "
    "SpatialDropout1D SpatialDropout2D Subtract TimeDistributed UnitNormalization UpSampling1D "
    "UpSampling2D ZeroPadding1D ZeroPadding2D"
)
_INITIALIZERS = (
    "Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity LecunNormal LecunUniform Ones "
    "Orthogonal RandomNormal RandomUniform TruncatedNormal VarianceScaling Zeros"
)
_NAMES: dict[Any, str] = {
    "keras": "Sequential Functional DTypePolicy",
    "keras.layers": _LAYERS,
    "keras.initializers": _INITIALIZERS,
    "keras.regularizers": "L1 L2 L1L2",
    "keras.constraints": "MaxNorm MinMaxNorm NonNeg UnitNorm",
    "keras.mixed_precision": "Policy",
    "keras.src.models.functional": "Functional",
    "tf_keras.src.engine.functional": "Functional",
    None: "__keras_tensor__",  # by which Keras 3 links layers
}
#: Modules and names of the classes that Keras may instantiate.
_CLASSES = {(home, name) for home, names in _NAMES.items() for name in names.split()}
_WORDS = (
    "linear relu relu6 leaky_relu elu selu gelu silu swish mish tanh sigmoid hard_sigmoid "
    "hard_silu softmax softplus softsign exponential log_softmax float16 bfloat16 float32 float64 "
    "mixed_float16 mixed_bfloat16 valid same causal channels_last channels_first nearest bilinear "
    "bicubic area lanczos3 lanczos5 concat sum mul ave uniform truncated_normal untruncated_normal "
    "normal fan_in fan_out fan_avg"
)
#: Texts that an argument may be.
_TEXTS = {*_WORDS.split()}
#: Arguments that may be any text: names of layers, and of classes, which are checked together.
_FREE = {"name", "inbound_nodes", "input_layers", "output_layers", "keras_history"}
_FREE |= {"module", "class_name", "registered_name"}


def describe(network: Any) -> dict[str, Any]:
    """
    :return: "keras" or "tf_keras", "layers", the configuration as JSON, None where only the user
        can restore the network, and "names" of its weights, whose values are stored elsewhere.
    """
    layers = None
    with contextlib.suppress(Exception):  # a user's layer may fail to describe itself
        text = json.dumps(keras_of(network).saving.serialize_keras_object(network))
        told = json.loads(text, object_hook=_without_losses)
        check(told)
        layers = told
    keras = "keras" if is_keras_3(network) else "tf_keras"
    return {"keras": keras, "layers": layers, "names": _names(network)}


def _without_losses(told: dict[str, Any]) -> dict[str, Any]:
    return {key: part for key, part in told.items() if key != "compile_config"}


def make(told: Mapping[str, Any], weights: Sequence[AnyNDArray], own: Any = None) -> Any:
    """
    :param told: see `describe`.
    :param own: the user's network, instead of the one in the file.
    :return: the network with these weights; `own` gets a final normalization if the network in the
        file had one, as those of `gpflow_bsvm.deep.hybrid` do.
    :raise ValueError: for a description of anything but known layers, or weights whose names or
        shapes differ from those of the network.
    """
    network = _of_layers(told) if own is None else own
    if told["names"] == [*_names(network), "moving_mean", "moving_variance"]:
        F = np.zeros([1, network.output_shape[-1]])
        network = normalised(network, F, tuple(network.input_shape[1:]))
    here = [f"{n} {list(w.shape)}" for n, w in zip(_names(network), network.weights)]
    there = [f"{n} {list(w.shape)}" for n, w in zip(told["names"], weights, strict=True)]
    if here != there:
        raise ValueError(
            f"it holds a network with weights {', '.join(there)}, and the network here has "
            f"{', '.join(here) or 'none yet: build it first'}"
        )
    network.set_weights(weights)
    return network


def _of_layers(told: Mapping[str, Any]) -> Any:
    if told["layers"] is None:
        raise ValueError(
            "it holds the weights of a network whose layers a file cannot tell: give the network, "
            "as in gpflow_bsvm.load(path, network=...)"
        )
    check(told["layers"])
    keras = importlib.import_module("keras" if told["keras"] == "keras" else "tf_keras")
    return keras.saving.deserialize_keras_object(copy.deepcopy(told["layers"]), safe_mode=True)


def _names(network: Any) -> list[str]:
    """:return: names of its weights, without those of layers, which Keras numbers on creation."""
    return [weight.name.rsplit("/", 1)[-1].partition(":")[0] for weight in network.weights]


def check(told: Any, key: str = "network") -> None:
    """
    :param told: a configuration that Keras is to instantiate, or a part of one.
    :param key: where it stands: the name of an argument.
    :raise ValueError: for anything but objects from the lists above, numbers and known texts.
    """
    if isinstance(told, dict):
        if "class_name" in told:
            _check_class(told, key)
        for name, part in told.items():
            check(part, name)
    elif isinstance(told, list):
        for part in told:
            check(part, key)
    elif isinstance(told, str) and key not in _FREE and told not in _TEXTS:
        raise ValueError(f"the network has {key!r} of {told[:60]!r}, which a file cannot tell")


def _check_class(told: Mapping[str, Any], key: str) -> None:
    home, name, other = told.get("module"), told["class_name"], told.get("registered_name")
    if (home, name) not in _CLASSES or other not in (None, name):
        raise ValueError(
            f"the network holds a {name} of {home} as {key}, which a file cannot tell: use known "
            "layers of Keras, or give the network, as in gpflow_bsvm.load(path, network=...)"
        )
