"""From a description and arrays to objects: only of known classes, even for untrusted files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..deep.network import with_weights
from ..engine.contracts import as_variables
from .known import FUNCTIONS, OF_TFP, TEXTS, check_numbers, find_class, loaded, may_be_set


class Decoder:
    """
    Restores the values described by `Encoder`, for each array one. The only class code called is
    that of transforms and priors of TensorFlow Probability, and nothing is imported.
    """

    def __init__(
        self, arrays: Sequence[AnyNDArray], network: Sequence[Any] = (), name: str = "model"
    ) -> None:
        """
        :param network: the user's networks, which receive the weights in the file, in their order.
        """
        self._arrays = dict(enumerate(arrays))
        self._objects: list[Any] = []  # in the order of their descriptions
        self._own = iter(network)
        self._path = [name]
        self._kinds: dict[str, Callable[[Any], Any]] = {
            "again": lambda node: self._objects[node["number"]],
            "array": self._array,
            "dict": lambda node: {self.decode(k): self.decode(v) for k, v in node["pairs"]},
            "function": lambda node: FUNCTIONS[node["name"]],
            "list": lambda node: [self.decode(item) for item in node["items"]],
            "named": self._named,
            "network": self._network,
            "object": self._object,
            "objects": lambda node: np.fromiter(
                (self.decode(item) for item in node["items"]), object
            ).reshape(node["shape"]),
            "of TFP": lambda node: OF_TFP[node["class"]](**self._parts(node["arguments"])),
            "parameter": self._parameter,
            "scalar": lambda node: self._array(node)[()],
            "slice": lambda node: slice(*(self.decode(end) for end in node["ends"])),
            "text": lambda node: TEXTS[node["type"]][1](node["text"]),
            "tensor": lambda node: tf.constant(self._array(node)),
            "tuple": lambda node: tuple(self.decode(item) for item in node["items"]),
            "variable": lambda node: self._made(self._variable(node)),
        }

    @property
    def place(self) -> str:
        """:return: the user's name for the part being read."""
        return ".".join(self._path)

    def decode(self, node: Any) -> Any:
        """
        :param node: a description.
        :return: the object described.
        :raise ValueError, KeyError, TypeError, IndexError: for an invalid description.
        """
        return self._kinds[node["kind"]](node) if isinstance(node, dict) else node

    def _parts(self, nodes: Any, cls: type | None = None) -> dict[str, Any]:
        found = {}
        for name, part in nodes.items():
            self._path.append(name)
            found[name] = self.decode(part)
            if cls is not None:
                check_numbers(cls, name, found[name])
            self._path.pop()
        return found

    def _made(self, value: Any) -> Any:
        self._objects.append(value)
        return value

    def _array(self, node: Any) -> AnyNDArray:
        number = node["value"]
        if number not in self._arrays:
            raise ValueError(f"there is no array {number}, or it was read before")
        array = self._arrays.pop(number)
        if array.dtype.kind in "fc" and np.isnan(array).any():
            raise ValueError(f"array {number} holds NaN")
        return array

    def _named(self, node: Any) -> Any:
        cls, items = loaded(node["class"]), [self.decode(item) for item in node["items"]]
        named = isinstance(cls, type) and tuple in cls.__mro__ and hasattr(cls, "_fields")
        if not named or len(cls._fields) != len(items):
            raise ValueError(f"{node['class']} is no NamedTuple of {len(items)} fields")
        return tuple.__new__(cls, items)

    def _object(self, node: Any) -> Any:
        name, cls = node["class"], find_class(node["class"])
        if cls is None:
            raise ValueError(
                f"it holds a {name}, which is not known here: import the module that defines it "
                "and, if it is your own, call gpflow_bsvm.saving.register(cls) before load"
            )
        if wrong := [key for key in node["state"] if not may_be_set(cls, key)]:
            raise ValueError(f"{wrong[0]!r} of a {name} may not be set by a file")
        made: Any = object.__new__(cls)
        state = self._parts(node["state"], cls)
        if isinstance(made, tf.Module):
            tf.Module.__init__(made)
        for key, part in state.items():  # TensorFlow's own bookkeeping
            (setattr if isinstance(made, tf.Module) else object.__setattr__)(made, key, part)
        return self._made(made)

    def _network(self, node: Any) -> Any:
        weights = [self._array({"value": number}) for number in node["weights"]]
        made = with_weights(next(self._own, None), node["names"], weights)
        self._objects += as_variables(made.weights)
        return self._made(made)

    def _parameter(self, node: Any) -> gpflow.Parameter:
        """Assign to the variable itself: its transform might not restore the last bit."""
        variable, transform = self._variable(node["variable"]), self.decode(node["transform"])
        if not variable.dtype.is_floating:
            raise ValueError(f"a parameter is of {variable.dtype.name}")
        check_numbers(gpflow.Parameter, "value", variable.numpy())
        start = tf.zeros(variable.value().shape, variable.dtype)
        parameter = gpflow.Parameter(
            transform.forward(start),
            transform=transform,
            prior=self.decode(node["prior"]),
            prior_on=node["prior_on"],
            trainable=variable.trainable,
            dtype=variable.dtype,
            unconstrained_shape=node["variable"]["shape"],
            constrained_shape=node["shape"],
        )
        parameter.unconstrained_variable.assign(variable)
        self._made(parameter)
        return parameter

    def _variable(self, node: Any) -> tf.Variable:
        shape = tf.TensorShape(node["shape"])
        return tf.Variable(self._array(node), trainable=node["trainable"], shape=shape)
