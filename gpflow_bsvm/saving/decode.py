"""From a description and arrays to objects: only of known classes, whoever wrote the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..checkpoints.values import ValueDecoder
from ..deep.network import with_weights
from ..engine.contracts import as_variables
from .known import FUNCTIONS, OF_TFP, check_numbers, find_class, may_be_set


class Decoder(ValueDecoder):
    """
    Restores the values that `Encoder` described, one for each array. The only class code that is
    called is that of transforms and priors of TensorFlow Probability, and nothing is imported.
    """

    def __init__(
        self, arrays: Sequence[AnyNDArray], network: Sequence[Any] = (), name: str = "model"
    ) -> None:
        """
        :param network: the user's networks, which get the weights in the file, in their order.
        """
        super().__init__(arrays)
        self._objects: list[Any] = []  # in the order in which they were written
        self._own = iter(network)
        self._path = [name]
        self._kinds |= {
            "again": lambda node: self._objects[node["number"]],
            "function": lambda node: FUNCTIONS[node["name"]],
            "network": self._network,
            "object": self._object,
            "of TFP": lambda node: OF_TFP[node["class"]](**self._parts(node["arguments"])),
            "parameter": self._parameter,
            "slice": lambda node: slice(*(self.decode(end) for end in node["ends"])),
            "variable": lambda node: self._made(self._variable(node)),
        }

    @property
    def place(self) -> str:
        """:return: the user's name for what is being read."""
        return ".".join(self._path)

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
