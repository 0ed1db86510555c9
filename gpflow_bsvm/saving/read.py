"""A description and arrays to objects: of known classes only, and nothing in a file is executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from . import networks
from .known import FUNCTIONS, PRIORS, TRANSFORMS
from .registry import find, is_estimator

#: What constructors get in the place of the values of parameters, which may be such that they would
#: not take them back: positive, and a probability.
START = 0.5

#: What becomes of a description that fits nothing.
UNFIT = (ValueError, KeyError, IndexError, TypeError, AttributeError, tf.errors.OpError)


class Reader:
    """
    :ivar objects: all that have been made, in the order in which `Writer` has seen them.
    """

    def __init__(self, arrays: Sequence[AnyNDArray]) -> None:
        self.objects: list[Any] = []
        self._arrays = arrays
        self._kinds: dict[str, Callable[[Any], Any]] = {
            "again": lambda node: self.objects[node["number"]],
            "array": self._array,
            "dict": lambda node: {self.read(k): self.read(v) for k, v in node["pairs"]},
            "function": lambda node: FUNCTIONS[node["name"]],
            "list": lambda node: [self.read(item) for item in node["items"]],
            "network": self._network,
            "object": self._object,
            "objects": self._labels,
            "parameter": self._parameter,
            "prior": lambda node: PRIORS[node["class"]](**self._arguments(node)),
            "random state": self._random_state,
            "rows": lambda node: [np.asarray(row) for row in self._array(node)],
            "scalar": lambda node: self._array(node)[()],
            "slice": lambda node: slice(*(self.read(end) for end in node["ends"])),
            "start": lambda node: np.full(node["shape"], START, node["dtype"]),
            "tensor": lambda node: tf.constant(self._array(node)),
            "transform": lambda node: TRANSFORMS[node["class"]](**self._arguments(node)),
            "tuple": lambda node: tuple(self.read(item) for item in node["items"]),
            "variable": lambda node: self._made(self._variable(node)),
        }

    def read(self, node: Any) -> Any:
        """
        :param node: a description.
        :return: what it describes.
        :raise ValueError: for a class that is not known.
        :raise KeyError, TypeError, IndexError: for what is no description.
        """
        return self._kinds[node["kind"]](node) if isinstance(node, dict) else node

    def _array(self, node: Any) -> AnyNDArray:
        return self._arrays[node["value"]].copy()

    def _arguments(self, node: Any) -> dict[str, Any]:
        return {name: self.read(part) for name, part in node["arguments"].items()}

    def _made(self, value: Any) -> Any:
        self.objects.append(value)
        return value

    def _object(self, node: Any) -> Any:
        name = node["class"]
        recipe = find(name)
        if recipe is None:
            raise ValueError(
                f"it holds a {name}, which is not known here: import the module that defines it "
                "and call gpflow_bsvm.saving.register(cls) before load"
            )
        made = recipe.cls(**self._arguments(node))
        for attribute, part in node["state"].items():
            if is_estimator(recipe.cls) and (attribute[0] == "_" or attribute[-1] != "_"):
                raise ValueError(f"{attribute!r} is nothing that a {name} learns")
            setattr(made, attribute, self.read(part))
        return self._made(made)

    def _network(self, node: Any) -> Any:
        made = networks.make(node)
        made.set_weights([self._arrays[number] for number in node["weights"]])
        return self._made(made)

    def _labels(self, node: Any) -> AnyNDArray:
        found: AnyNDArray = np.empty(len(node["items"]), dtype=object)
        for n, item in enumerate(node["items"]):
            found[n] = self.read(item)
        return found.reshape(node["shape"])

    def _parameter(self, node: Any) -> gpflow.Parameter:
        """The value is given to the variable: its transform might not take it back to the bit."""
        variable, transform = self._variable(node["variable"]), self.read(node["transform"])
        start = tf.zeros(variable.value().shape, variable.dtype)
        parameter = gpflow.Parameter(
            transform.forward(start),
            transform=transform,
            prior=self.read(node["prior"]),
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
        value, shape = self._array(node), tf.TensorShape(node["shape"])
        return tf.Variable(value, trainable=node["trainable"], shape=shape)

    def _random_state(self, node: Any) -> np.random.RandomState:
        state = np.random.RandomState()
        state.set_state(self.read(node["state"]))
        self._made(state)
        return state
