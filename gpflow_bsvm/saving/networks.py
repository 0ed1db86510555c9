"""
Networks of Keras in a file: layers of a list, told by numbers and a few known names.

Keras imports modules and calls functions that a configuration names, so that none is given to it
before all of it has been looked through.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.keras import tf_keras

from ..deep.network import is_keras_3, normalised

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
_ACTIVATIONS = (
    "linear relu relu6 leaky_relu elu selu gelu silu swish mish tanh sigmoid hard_sigmoid "
    "hard_silu softmax softplus softsign exponential log_softmax"
)
_INITIALIZERS = (
    "Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity LecunNormal LecunUniform Ones "
    "Orthogonal RandomNormal RandomUniform TruncatedNormal VarianceScaling Zeros"
)
_FUNCTIONAL = {"tf_keras.src.engine.functional", "keras.src.models.functional", "keras"}
_LAYER_CLASSES = {
    *(("keras.layers", name) for name in _LAYERS.split()),
    ("keras", "Sequential"),
    *((home, "Functional") for home in _FUNCTIONAL),
}
#: What may stand where, by how an argument's name ends: homes and names of classes.
_CLASSES = {
    "layer": _LAYER_CLASSES,
    "layers": _LAYER_CLASSES,
    "activation": _LAYER_CLASSES,
    "initializer": {("keras.initializers", name) for name in _INITIALIZERS.split()},
    "regularizer": {("keras.regularizers", n) for n in ("L1", "L2", "L1L2")},
    "constraint": {
        ("keras.constraints", n) for n in ("MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm")
    },
    "dtype": {("keras", "DTypePolicy"), ("keras.mixed_precision", "Policy")},
}
#: Texts that an argument may be, by how its name ends; None: any.
_TEXTS: dict[str, set[str] | None] = {
    "activation": {*_ACTIVATIONS.split()},
    "dtype": {"float16", "bfloat16", "float32", "float64", "mixed_float16", "mixed_bfloat16"},
    "name": None,
    "padding": {"valid", "same", "causal"},
    "data_format": {"channels_last", "channels_first"},
    "interpolation": {"nearest", "bilinear", "bicubic", "area", "lanczos3", "lanczos5"},
    "merge_mode": {"concat", "sum", "mul", "ave"},
    "distribution": {"uniform", "truncated_normal", "untruncated_normal", "normal"},
    "mode": {"fan_in", "fan_out", "fan_avg"},
}
#: A key of an object in a configuration.
_PARTS = {"module", "class_name", "config", "registered_name", "build_config", "name"}
_PARTS |= {"inbound_nodes", "shared_object_id"}
_LARGEST = 2**31  # of numbers of units, seeds and the like


class Untold(ValueError):
    """A network, or a description of one, that holds more than layers and numbers."""


def describe(network: Any) -> dict[str, Any]:
    """
    :return: Keras, configuration of a layer or model as JSON has it, and names of its weights,
        whose values are told elsewhere. The configuration is None where only the user can make the
        network again.
    """
    name = "keras" if is_keras_3(network) else "tf_keras"
    told = None
    with contextlib.suppress(Exception):  # anybody's layer may fail to tell what it is
        told = json.loads(json.dumps(_keras(name).saving.serialize_keras_object(network)))
        told = _without_losses(told)
        check(told)
        return {"keras": name, "layers": told, "names": _names(network)}
    return {"keras": name, "layers": None, "names": _names(network)}


def make(described: Mapping[str, Any]) -> Any:
    """
    :return: a network as `describe` has told it, its weights not yet those.
    :raise ValueError: for a description of anything but known layers.
    """
    name, told = described["keras"], described["layers"]
    if name not in ("keras", "tf_keras"):
        raise Untold(f"it holds a network of {name!r}, which is no Keras")
    if told is None:
        raise Untold(
            "it holds the weights of a network whose layers a file cannot tell: give the network, "
            "as in gpflow_bsvm.load(path, network=...)"
        )
    check(told)
    return _keras(name).saving.deserialize_keras_object(copy.deepcopy(told), safe_mode=True)


def with_weights(network: Any, described: Mapping[str, Any], weights: Sequence[AnyNDArray]) -> Any:
    """
    :return: the network with these weights; normalised at its end if that in the file was, as
        those of `gpflow_bsvm.deep.hybrid` are.
    :raise ValueError: for other weights than the network has, by their names and shapes.
    """
    if described["names"] == [*_names(network), "moving_mean", "moving_variance"]:
        F = np.zeros([1, network.output_shape[-1]])
        network = normalised(network, F, tuple(network.input_shape[1:]))
    own = [f"{n} {list(w.shape)}" for n, w in zip(_names(network), network.weights)]
    told = [f"{n} {list(w.shape)}" for n, w in zip(described["names"], weights)]
    if own != told or len(weights) != len(described["names"]):
        raise ValueError(
            f"it holds a network with weights {', '.join(told)}, and the network here has "
            f"{', '.join(own) or 'none yet: build it first'}"
        )
    network.set_weights(weights)
    return network


def _names(network: Any) -> list[str]:
    """:return: names of its weights, without those of layers, which Keras numbers as they come."""
    return [weight.name.rsplit("/", 1)[-1].partition(":")[0] for weight in network.weights]


def _keras(name: str) -> ModuleType:
    if name == "tf_keras":
        return tf_keras  # type: ignore[no-any-return]
    import keras

    return keras  # type: ignore[no-any-return]


def _without_losses(told: Any) -> Any:
    """:return: a configuration without what `compile` was told."""
    if isinstance(told, dict):
        kept = {key: part for key, part in told.items() if key != "compile_config"}
        return {key: _without_losses(part) for key, part in kept.items()}
    return [_without_losses(part) for part in told] if isinstance(told, list) else told


def check(told: Any, key: str = "layer") -> None:
    """
    :param told: what Keras is to make an object of.
    :param key: where it stands: the name of an argument.
    :raise Untold: for anything but objects of the lists above, whose arguments are numbers, known
        texts, and such objects again.
    """
    if not isinstance(told, dict) or not {"module", "class_name", "config"} <= set(told):
        raise Untold(f"the network holds {_short(told)} as {key}")
    home, name = told["module"], told["class_name"]
    if (home, name) not in _CLASSES.get(_ending(key, _CLASSES), ()):
        raise Untold(
            f"the network holds a {name} of {home} as {key}, which a file cannot tell: use known "
            "layers of Keras, or give the network, as in gpflow_bsvm.load(path, network=...)"
        )
    odd = sorted(set(told) - _PARTS)
    if odd or told.get("registered_name") not in (None, name):
        raise Untold(f"the network holds a {name} with {odd or told['registered_name']}")
    _check_text("name", told.get("name"))
    _check_nodes(told.get("inbound_nodes", []))
    _check_values("build_config", told.get("build_config"))
    for argument, value in _mapping(told["config"]).items():
        _check_argument(argument, value)


def _check_argument(key: str, value: Any) -> None:
    if key == "layers":
        for layer in value:
            check(layer, key)
    elif key in ("input_layers", "output_layers"):
        _check_nodes(value)
    elif isinstance(value, dict):
        check(value, key)
    else:
        _check_values(key, value)


def _check_values(key: str, value: Any) -> None:
    """:raise Untold: for anything but numbers and known texts in lists and dictionaries."""
    if isinstance(value, dict):
        for name, part in _mapping(value).items():
            _check_values(name, part)
    elif isinstance(value, list):
        for part in value:
            _check_values(key, part)
    elif isinstance(value, str):
        _check_text(key, value)
    elif type(value) is int and abs(value) > _LARGEST:
        raise Untold(f"the network has {key}={value}, which is too large a whole number")


def _check_text(key: str, value: Any) -> None:
    known = _TEXTS.get(_ending(key, _TEXTS), set())
    if value is not None and not (isinstance(value, str) and (known is None or value in known)):
        raise Untold(f"the network has {key!r} of {_short(value)}, which a file cannot tell")


def _check_nodes(value: Any) -> None:
    """How layers are linked: by their names in lists, and by Keras' own kind of tensors."""
    if isinstance(value, dict) and "class_name" in value:
        if value["class_name"] != "__keras_tensor__" or set(value) != {"class_name", "config"}:
            raise Untold(f"the network links its layers by {_short(value)}")
        config = _mapping(value["config"])
        _check_nodes(config.pop("keras_history", []))
        _check_values("", config)
    elif isinstance(value, dict):
        for name, part in _mapping(value).items():
            if isinstance(part, str):
                _check_text(name, part)
            _check_nodes(part)
    elif isinstance(value, list):
        for part in value:
            if not isinstance(part, str):
                _check_nodes(part)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or "class_name" in value:
        raise Untold(f"the network holds {_short(value)} where arguments are due")
    return dict(value)


def _ending(key: str, known: Mapping[str, Any]) -> str:
    """:return: the name in `known` of an argument; "" for none."""
    own = (name for name in known if name != "name" and key.endswith(f"_{name}"))
    return key if key in known else next(own, "")


def _short(value: Any) -> str:
    return repr(value)[:60]
