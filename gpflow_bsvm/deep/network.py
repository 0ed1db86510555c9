"""A Keras network as a function of rows [N, D], for tf_keras and Keras 3."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from gpflow.keras import tf_keras

from ..checks import check_whole

#: Momentum of the features' moving averages, which adapt within about ten steps.
_MOMENTUM = 0.9
#: Added to variances. (Keras adds 1e-3, more than the variances of a new network's features.)
_EPSILON = 1e-8


def is_layer(value: Any) -> bool:
    """:return: True for a layer or model of tf_keras, or of Keras 3."""
    return isinstance(value, tf_keras.layers.Layer) or is_keras_3(value)


def is_keras_3(value: Any) -> bool:
    """:return: True for a layer or model of Keras 3, without importing Keras 3."""
    homes = {cls.__module__.partition(".")[0] for cls in type(value).__mro__}
    return "keras" in homes and hasattr(value, "trainable_variables")


def keras_of(features: Any) -> ModuleType:
    """:return: the Keras module that a layer belongs to."""
    return sys.modules["keras"] if is_keras_3(features) else tf_keras


def check_layer(features: Any) -> None:
    """:raise TypeError: unless it is a layer that computes with TensorFlow."""
    if not is_layer(features):
        raise TypeError(
            "features must be a layer or model of tf_keras or Keras 3, got "
            f"{type(features).__name__}"
        )
    backend = keras_of(features).backend.backend() if is_keras_3(features) else "tensorflow"
    if backend != "tensorflow":
        raise TypeError(
            f"features is a Keras layer on {backend}; GPflow needs TensorFlow: set the environment "
            "variable KERAS_BACKEND=tensorflow before the import of keras"
        )


def input_shape_of(features: Any, input_shape: Sequence[int] | int | None) -> tuple[int, ...]:
    """
    :param input_shape: shape of a row for the network, or its number of entries; None: as the
        network declares.
    :raise ValueError: if neither gives a shape, if they differ, or if there are several inputs.
    """
    inputs = getattr(features, "inputs", None) if getattr(features, "built", False) else None
    if isinstance(inputs, (list, tuple, dict)) and len(inputs) > 1:
        raise ValueError(
            f"the network has {len(inputs)} inputs, but DeepKernel passes only X: use a network "
            "with one input that splits the columns itself"
        )
    own = getattr(features, "input_shape", None) if getattr(features, "built", False) else None
    known = tuple(own[1:]) if isinstance(own, tuple) and None not in own[1:] else None
    if input_shape is None and known is None:
        raise ValueError(
            "the network declares no input shape: give input_shape, without the number of rows, "
            "such as (28, 28, 1)"
        )
    shape = tuple(known or () if input_shape is None else np.ravel(input_shape).tolist())
    check_whole(1, **{f"input_shape[{n}]": number for n, number in enumerate(shape)})
    if known is not None and shape != known:
        raise ValueError(f"input_shape is {shape}, but the network takes {known}")
    return shape


def dtype_of(features: Any) -> tf.DType:
    """
    :return: the widest dtype of the weights (the network itself may declare single precision even
        if its layers have double precision).
    """
    weights = features.weights if getattr(features, "built", False) else ()
    dtypes = [tf.as_dtype(weight.dtype) for weight in weights]
    own = tf.as_dtype(getattr(features, "compute_dtype", None) or tf.float32)
    return max((d for d in dtypes if d.is_floating), key=attrgetter("size"), default=own)


def call(
    features: Any, X: tf.Tensor, input_shape: tuple[int, ...], training: bool = False
) -> tf.Tensor:
    """
    :param X: [..., D], with D the product of `input_shape`.
    :param training: whether dropout is active, and batch normalization uses the batch's moments.
    :return: [..., Q], in GPflow's default float; the network computes in its own dtype.
    :raise ValueError: if X has a wrong width, or if the network does not return vectors.
    """
    width = math.prod(input_shape)
    if X.shape[-1] not in (None, width):
        raise ValueError(
            f"X has {X.shape[-1]} columns, but the network takes {list(input_shape)}, that is, "
            f"{width}: X must be [N, {width}], such as images.reshape(len(images), -1)"
        )
    rows = tf.reshape(tf.cast(X, dtype_of(features)), [-1, *input_shape])
    F = tf.convert_to_tensor(features(rows, training=training))
    if F.shape.rank != 2:
        raise ValueError(
            "features must give a vector for each row, [N, Q]; this network gives shape "
            f"{list(F.shape)}: end it with Flatten() or GlobalAveragePooling2D()"
        )
    return tf.reshape(
        tf.cast(F, default_float()), tf.concat([tf.shape(X)[:-1], [F.shape[-1]]], axis=0)
    )


def normalised(features: Any, F: AnyNDArray, input_shape: tuple[int, ...]) -> Any:
    """
    :param F: [N, Q], outputs of the network.
    :return: the network with a final batch normalization, whose moving averages are F's moments.
    """
    keras = keras_of(features)
    dtype = dtype_of(features).name
    last = keras.layers.BatchNormalization(
        momentum=_MOMENTUM, epsilon=_EPSILON, center=False, scale=False, dtype=dtype
    )
    made = keras.Sequential([keras.Input(input_shape, dtype=dtype), features, last])
    last.set_weights([F.mean(axis=0), F.var(axis=0)])
    return made


def names_of(network: Any) -> list[str]:
    """:return: names of the weights, without names of layers, which Keras numbers on creation."""
    return [weight.name.rsplit("/", 1)[-1].partition(":")[0] for weight in network.weights]


def with_weights(network: Any, names: Sequence[str], weights: Sequence[AnyNDArray]) -> Any:
    """
    :param names: names of the file's weights, in order.
    :return: the network with these weights; like the saved network, it may end with the
        normalization of `gpflow_bsvm.deep.kernel`.
    :raise ValueError: without a network, or if names or shapes of its weights differ.
    """
    if network is None:
        raise ValueError(
            "it holds a network's weights, not its layers: give the network, as in "
            "gpflow_bsvm.load(path, network=...)"
        )
    if [*names] == [*names_of(network), "moving_mean", "moving_variance"]:
        F = np.zeros([1, network.output_shape[-1]])
        network = normalised(network, F, tuple(network.input_shape[1:]))
    here = [f"{n} {list(w.shape)}" for n, w in zip(names_of(network), network.weights)]
    there = [f"{n} {list(w.shape)}" for n, w in zip(names, weights, strict=True)]
    if here != there:
        raise ValueError(
            f"it holds a network with weights {', '.join(there)}, but the given network has "
            f"{', '.join(here) or 'none yet: build it first'}"
        )
    network.set_weights(weights)
    return network
