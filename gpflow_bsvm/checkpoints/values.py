"""
Convert numbers, strings, arrays and structures of them to JSON and arrays, and back.

A dictionary with a "kind" describes a value that JSON lacks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from operator import methodcaller
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..optional import Later

pandas = Later("pandas", "files")
#: Types that JSON represents exactly, including floats.
_PLAIN = (type(None), bool, int, float, str)


def full_name(cls: Any) -> str:
    """:return: module and name of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def loaded(name: str) -> Any:
    """:return: the object of this name in an imported module, or None."""
    home, _, own = name.rpartition(".")
    return vars(sys.modules[home]).get(own) if home in sys.modules else None


#: Conversions of values, such as labels, to text and back.
TEXTS: dict[str, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    "builtins.bytes": (bytes.hex, bytes.fromhex),
    "datetime.date": (date.isoformat, date.fromisoformat),
    "datetime.datetime": (datetime.isoformat, datetime.fromisoformat),
    "datetime.time": (time.isoformat, time.fromisoformat),
    "decimal.Decimal": (str, Decimal),
    "pandas.Timestamp": (methodcaller("isoformat"), lambda text: pandas.Timestamp(text)),
}


class ValueEncoder:
    """:ivar arrays: the arrays, by their number in the description."""

    def __init__(self) -> None:
        self.arrays: list[AnyNDArray] = []

    def encode(self, value: Any, place: str) -> Any:
        """
        :param value: numbers, strings, arrays, tensors and other types known to a subclass, in any
            structure of tuples, lists, dictionaries and NamedTuples.
        :param place: the user's name for the value.
        :raise TypeError: for values that cannot be restored.
        """
        if type(value) in _PLAIN:
            return value
        if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            kind = "array" if isinstance(value, np.ndarray) else "scalar"
            return {"kind": kind, "value": self._store(value)}
        if isinstance(value, tf.Tensor):
            return {"kind": "tensor", "value": self._store(value.numpy())}
        if isinstance(value, Mapping | list | tuple):
            return self._structure(value, place)
        if isinstance(value, np.ndarray):  # labels, names
            items = [self.encode(item, f"{place}[{n}]") for n, item in enumerate(value.flat)]
            return {"kind": "objects", "shape": list(value.shape), "items": items}
        home, _, own = full_name(type(value)).partition(".")
        if text := TEXTS.get(public := f"{home}.{own.rpartition('.')[2]}"):
            return {"kind": "text", "type": public, "text": text[0](value)}
        return self._object(value, place)

    def _structure(self, value: Any, place: str) -> dict[str, Any]:
        if isinstance(value, Mapping):
            encode = self.encode
            items = value.items()
            pairs = [[encode(key, place), encode(v, f"{place}[{key!r}]")] for key, v in items]
            return {"kind": "dict", "pairs": pairs}
        cls = value.__class__  # `type` would return TensorFlow's wrapper
        told = {"items": [self.encode(item, f"{place}[{n}]") for n, item in enumerate(value)]}
        if hasattr(cls, "_fields"):
            return {"kind": "named", "class": full_name(cls), **told}
        return {"kind": "tuple" if isinstance(value, tuple) else "list", **told}

    def _object(self, value: Any, place: str) -> dict[str, Any]:
        raise TypeError(
            f"{place} is a {full_name(type(value))}, which a checkpoint cannot hold; it can hold "
            "numbers, strings, dates, and arrays of these"
        )

    def _store(self, value: Any) -> int:
        """:return: the array's number in the description."""
        self.arrays.append(np.asarray(value))
        return len(self.arrays) - 1


class ValueDecoder:
    """Restores the values described by a `ValueEncoder`."""

    def __init__(self, arrays: Sequence[AnyNDArray]) -> None:
        self._arrays = dict(enumerate(arrays))
        self._kinds: dict[str, Callable[[Any], Any]] = {
            "array": self._array,
            "dict": lambda node: {self.decode(k): self.decode(v) for k, v in node["pairs"]},
            "list": self._items,
            "named": self._named,
            "objects": lambda node: np.fromiter(self._items(node), object).reshape(node["shape"]),
            "scalar": lambda node: self._array(node)[()],
            "text": lambda node: TEXTS[node["type"]][1](node["text"]),
            "tensor": lambda node: tf.constant(self._array(node)),
            "tuple": lambda node: tuple(self._items(node)),
        }

    def decode(self, node: Any) -> Any:
        """:raise ValueError, KeyError, TypeError, IndexError: for an invalid description."""
        return self._kinds[node["kind"]](node) if isinstance(node, dict) else node

    def _items(self, node: Any) -> list[Any]:
        return [self.decode(item) for item in node["items"]]

    def _array(self, node: Any) -> AnyNDArray:
        number = node["value"]
        if number not in self._arrays:
            raise ValueError(f"there is no array {number}, or it was read before")
        array = self._arrays.pop(number)
        if array.dtype.kind in "fc" and np.isnan(array).any():
            raise ValueError(f"array {number} holds NaN")
        return array

    def _named(self, node: Any) -> Any:
        cls = loaded(node["class"])
        items = self._items(node)
        named = isinstance(cls, type) and tuple in cls.__mro__ and hasattr(cls, "_fields")
        if not named or len(cls._fields) != len(items):
            raise ValueError(f"{node['class']} is not a NamedTuple of {len(items)} fields")
        return tuple.__new__(cls, items)
