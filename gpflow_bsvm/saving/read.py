"""A description and arrays to objects: of known classes only, from whomever the file is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from . import networks
from .encoding import Decoder
from .known import FUNCTIONS, PRIORS, TRANSFORMS, arguments_of, find, state_of

#: What constructors get instead of the values of parameters, which may be such that they would not
#: take them back: positive, and a probability.
START = 0.5
#: Entries of starts beside those that the arrays account for.
_MORE_ENTRIES = 10**6


class Reader(Decoder):
    """
    :ivar objects: all that have been made, in the order in which `Writer` has seen them.
    """

    def __init__(
        self, arrays: Sequence[AnyNDArray], network: Sequence[Any] = (), name: str = "model"
    ) -> None:
        """
        :param network: the user's own for those that the file tells, in their order; None for one
            that is made as the file says.
        """
        super().__init__(arrays)
        self.objects: list[Any] = []
        self._own = iter(network)
        self._entries = _MORE_ENTRIES + 2 * sum(array.size for array in arrays)
        self._path = [name]
        self.kinds |= {
            "again": lambda node: self.objects[node["number"]],
            "function": lambda node: FUNCTIONS[node["name"]],
            "network": self._network,
            "object": self._object,
            "objects": self._labels,
            "parameter": self._parameter,
            "prior": lambda node: PRIORS[node["class"]](**self._arguments(node)),
            "random state": self._random_state,
            "slice": lambda node: slice(*(self.decode(end) for end in node["ends"])),
            "start": self._start,
            "transform": lambda node: TRANSFORMS[node["class"]](**self._arguments(node)),
            "variable": lambda node: self._made(self._variable(node)),
        }

    @property
    def place(self) -> str:
        """:return: the name of what is being read, as a user calls it."""
        return ".".join(self._path)

    def whole(self, node: Any) -> Any:
        """
        :return: the object of all that a file tells, see `decode`.
        :raise ValueError: also for a user's network that no part of it has asked for.
        """
        made = self.decode(node)
        if next(self._own, None) is not None:
            raise ValueError("it holds fewer networks than were given")
        return made

    def _start(self, node: Any) -> AnyNDArray:
        self._entries -= math.prod(node["shape"])
        if self._entries < 0 or np.dtype(node["dtype"]).kind not in "biuf":
            raise ValueError(f"{node['shape']} of {node['dtype']} is larger than the arrays are")
        return np.full(node["shape"], START, node["dtype"])

    def _arguments(self, node: Any) -> dict[str, Any]:
        return {name: self._at(name, part) for name, part in node["arguments"].items()}

    def _at(self, name: str, part: Any) -> Any:
        self._path.append(name)
        value = self.decode(part)
        self._path.pop()
        return value

    def _made(self, value: Any) -> Any:
        self.objects.append(value)
        return value

    def _object(self, node: Any) -> Any:
        name = node["class"]
        cls = find(name)
        if cls is None:
            raise ValueError(
                f"it holds a {name}, which is not known here: import the module that defines it "
                "and, if it is your own, call gpflow_bsvm.saving.register(cls) before load"
            )
        unknown = sorted(set(node["arguments"]) - set(arguments_of(cls)))
        if unknown:
            raise ValueError(f"{name} is not made with {', '.join(map(repr, unknown))}")
        made = cls(**self._arguments(node))
        state = state_of(cls)
        for attribute, part in node["state"].items():
            there = hasattr(made, attribute) or not isinstance(made, tf.Module)
            if not (attribute in state and there) and not is_held(vars(made).get(attribute)):
                raise ValueError(f"{attribute!r} of a {name} may not be set by a file")
            value = self._at(attribute, part)
            if not state.get(attribute, is_held)(value):
                raise ValueError(f"{attribute!r} of a {name} may not be a {type(value).__name__}")
            setattr(made, attribute, value)
        return self._made(made)

    def _network(self, node: Any) -> Any:
        own = next(self._own, None)
        made = networks.make(node) if own is None else own
        weights = [self.array({"value": number}) for number in node["weights"]]
        return self._made(networks.with_weights(made, node, weights))

    def _labels(self, node: Any) -> AnyNDArray:
        found: AnyNDArray = np.empty(len(node["items"]), dtype=object)
        for n, item in enumerate(node["items"]):
            found[n] = self.decode(item)
        return found.reshape(node["shape"])

    def _parameter(self, node: Any) -> gpflow.Parameter:
        """The value is given to the variable: its transform might not take it back to the bit."""
        variable, transform = self._variable(node["variable"]), self.decode(node["transform"])
        if not variable.dtype.is_floating:
            raise ValueError(f"a parameter is of {variable.dtype.name}")
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
        value, shape = self.array(node), tf.TensorShape(node["shape"])
        if value.dtype.kind not in "biuf":
            raise ValueError(f"a variable is of {value.dtype}")
        return tf.Variable(value, trainable=node["trainable"], shape=shape)

    def _random_state(self, node: Any) -> np.random.RandomState:
        """NumPy does not look whether the position is within the key."""
        key, position = self.array(node), node["position"]
        if key.dtype != np.uint32 or not 0 <= position <= len(key):
            raise ValueError("it is no state of random numbers")
        state = np.random.RandomState()
        state.set_state(("MT19937", key, position, *node["gauss"]))
        self._made(state)
        return state


def is_held(value: Any) -> bool:
    """:return: True if it is what a file may exchange for another of its kind."""
    return isinstance(value, (tf.Variable, gpflow.Parameter))
