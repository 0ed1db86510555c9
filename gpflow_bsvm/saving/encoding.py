"""
Values to flat arrays and a description, which is JSON, and back: that of checkpoints and files.

Numbers, strings, arrays and tensors in any structure of tuples, lists, dictionaries and
NamedTuples. What is described is a dictionary with its "kind"; what JSON has is itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

#: What JSON tells as it is, floats to the last bit.
PLAIN = (type(None), bool, int, float, str)


class Encoder:
    """
    :ivar arrays: those that the description names by their numbers.
    """

    def __init__(self) -> None:
        self.arrays: list[AnyNDArray] = []

    def encode(self, value: Any, place: str) -> Any:
        """
        :param place: what a user calls it.
        :return: its description.
        :raise TypeError: for what cannot be made again.
        """
        if type(value) in PLAIN:
            return value
        if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            kind = "array" if isinstance(value, np.ndarray) else "scalar"
            return {"kind": kind, "value": self.store(value)}
        if isinstance(value, tf.Tensor):
            return {"kind": "tensor", "value": self.store(value.numpy())}
        if isinstance(value, Mapping):
            pairs = [
                [self.encode(key, place), self.encode(item, f"{place}[{key!r}]")]
                for key, item in value.items()
            ]
            return {"kind": "dict", "pairs": pairs}
        if isinstance(value, list) and _stacks(value):
            return {"kind": "rows", "value": self.store(np.stack(value))}
        if isinstance(value, list | tuple):
            return self._sequence(value, place)
        return self.other(value, place)

    def _sequence(self, value: Any, place: str) -> dict[str, Any]:
        cls = value.__class__  # of what TensorFlow wraps, where `type` tells the wrapper
        items = [self.encode(item, f"{place}[{n}]") for n, item in enumerate(value)]
        if hasattr(cls, "_fields"):
            return {"kind": "named", "class": full_name(cls), "items": items}
        return {"kind": "tuple" if isinstance(value, tuple) else "list", "items": items}

    def other(self, value: Any, place: str) -> Any:
        """:return: the encoding of what is neither a number nor a structure."""
        raise TypeError(f"{place} holds a {type(value).__name__}, which cannot be stored")

    def store(self, value: Any) -> int:
        """:return: the number of an array from now on."""
        self.arrays.append(np.asarray(value))
        return len(self.arrays) - 1


class Decoder:
    """Values from a description and arrays, whoever wrote them: of each array one value."""

    def __init__(self, arrays: Sequence[AnyNDArray]) -> None:
        self._arrays = dict(enumerate(arrays))
        self.kinds: dict[str, Callable[[Any], Any]] = {
            "array": self.array,
            "dict": lambda node: {self.decode(k): self.decode(v) for k, v in node["pairs"]},
            "list": lambda node: [self.decode(item) for item in node["items"]],
            "named": self._named,
            "rows": lambda node: [np.asarray(row) for row in self.array(node)],
            "scalar": lambda node: self.array(node)[()],
            "tensor": lambda node: tf.constant(self.array(node)),
            "tuple": lambda node: tuple(self.decode(item) for item in node["items"]),
        }

    def decode(self, node: Any) -> Any:
        """
        :param node: a description.
        :return: the object that it describes.
        :raise ValueError, KeyError, TypeError, IndexError: for what is none.
        """
        if isinstance(node, list) or node != node:
            raise ValueError(f"{str(node)[:20]} is nothing that is written")
        return self.kinds[node["kind"]](node) if isinstance(node, dict) else node

    def array(self, node: Any) -> AnyNDArray:
        """:return: the array with this number."""
        number = node["value"]
        if number not in self._arrays:
            raise ValueError(f"there is no array {number}, or it was read before")
        array = self._arrays.pop(number).copy()
        if array.dtype.kind in "fc" and np.isnan(array).any():
            raise ValueError(f"array {number} holds NaN")
        return array

    def _named(self, node: Any) -> Any:
        """:return: a NamedTuple; no code of its class is called, nor is a module imported."""
        home, _, name = node["class"].rpartition(".")
        cls: Any = vars(sys.modules[home]).get(name) if home in sys.modules else None
        items = [self.decode(item) for item in node["items"]]
        named = isinstance(cls, type) and tuple in cls.__mro__ and hasattr(cls, "_fields")
        if not named or len(cls._fields) != len(items):
            raise ValueError(f"{node['class']} is no NamedTuple of {len(items)} fields")
        return tuple.__new__(cls, items)


def full_name(cls: Any) -> str:
    """:return: module and name of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def _stacks(items: list[Any]) -> bool:
    """:return: True if these are arrays of one shape, as those of a history."""
    kinds = {(item.shape, item.dtype) if type(item) is np.ndarray else None for item in items}
    return len(kinds) == 1 and None not in kinds and not items[0].dtype.hasobject


def check_like(value: Any, like: Any, place: str = "content") -> None:
    """
    :param value: what was decoded.
    :param like: one whose place it is to take; None, and what it does not tell, may be anything.
    :raise ValueError: for other types, dtypes or shapes (of what is empty in `like`: of its rows).
    """
    if isinstance(like, dict):
        for key, part in like.items():
            check_like(value[key], part, f"{place}.{key}")
    elif isinstance(like, tuple):
        if type(value) is not type(like):
            raise ValueError(f"{place} is a {type(value).__name__}, not a {type(like).__name__}")
        for number, (one, other) in enumerate(zip(value, like)):
            check_like(one, other, f"{place}.{getattr(like, '_fields', range(len(like)))[number]}")
    elif isinstance(like, tf.Tensor | np.ndarray):
        _check_array(np.asarray(value), np.asarray(like), place)
    elif like is not None and isinstance(like, str) != isinstance(value, str):
        raise ValueError(f"{place} is {value!r}, not such as {like!r}")
    elif isinstance(like, bool | int | float) and not isinstance(value, _NUMBERS):
        raise ValueError(f"{place} is a {type(value).__name__}, not a number")


_NUMBERS = (bool, int, float, np.number)


def _check_array(value: AnyNDArray, like: AnyNDArray, place: str) -> None:
    rows = like.ndim and not len(like)
    same = value.shape[1:] == like.shape[1:] if rows else value.shape == like.shape
    if value.ndim != like.ndim or value.dtype != like.dtype or not same:
        raise ValueError(
            f"{place} is {value.dtype} of shape {list(value.shape)}, not {like.dtype} of "
            f"{list(like.shape)}"
        )
