"""Nested tuples of numbers and tensors to flat arrays and back, of known types only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray


def encode(value: Any, arrays: list[AnyNDArray]) -> Any:
    """
    :param value: None, numbers, strings, arrays and tensors in any structure of tuples, lists,
        dictionaries and NamedTuples.
    :param arrays: to which those of `value` are appended.
    :return: the structure, as JSON has it: a list begins with its kind, and `{"tensor": 3}` is
        arrays[3].
    :raise TypeError: for anything else.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, dict):
        return {"dict": {str(key): encode(item, arrays) for key, item in value.items()}}
    if isinstance(value, (list, tuple)):
        plain = "list" if isinstance(value, list) else "tuple"
        kind = name_of(type(value)) if hasattr(value, "_fields") else plain
        return [kind, *(encode(item, arrays) for item in value)]
    if isinstance(value, (tf.Tensor, np.ndarray, np.generic)):
        return _encode_array(value, arrays)
    raise TypeError(f"the state of a fit holds a {type(value).__name__}, which cannot be stored")


def _encode_array(value: Any, arrays: list[AnyNDArray]) -> dict[str, int]:
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"the state of a fit holds a {array.dtype} array, which cannot be stored")
    arrays.append(array)
    kind = "tensor" if isinstance(value, tf.Tensor) else "array"
    return {"scalar" if isinstance(value, np.generic) else kind: len(arrays) - 1}


def decode(tree: Any, arrays: list[AnyNDArray], types: Mapping[str, Any]) -> Any:
    """
    :param tree: from `encode`, with its `arrays`.
    :param types: NamedTuples by name: no others are made.
    :return: the value that was encoded.
    :raise KeyError: for another type, and KeyError, TypeError or IndexError for a bad tree.
    """
    if isinstance(tree, list):
        kind, *items = tree
        parts = [decode(item, arrays, types) for item in items]
        return parts if kind == "list" else tuple(parts) if kind == "tuple" else types[kind](*parts)
    if not isinstance(tree, dict):
        return tree
    ((kind, inside),) = tree.items()
    if kind == "dict":
        return {key: decode(item, arrays, types) for key, item in inside.items()}
    return _leaf(kind, arrays[inside])


def _leaf(kind: str, array: AnyNDArray) -> Any:
    if array.dtype.kind in "fc" and np.isnan(array).any():
        raise ValueError("an array holds NaN")
    if kind not in ("tensor", "array", "scalar"):
        raise ValueError(f"{kind} is no kind of value")
    return (
        tf.constant(array) if kind == "tensor" else array[()] if kind == "scalar" else array.copy()
    )


def check_like(value: Any, like: Any, place: str = "content") -> None:
    """
    :param value: a structure as in `encode`.
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


def name_of(cls: Any) -> str:
    """:return: the full name of a class or function."""
    return f"{cls.__module__}.{cls.__qualname__}"


def types_of(value: Any, others: Iterable[Any] = ()) -> dict[str, Any]:
    """
    :param value: a structure as in `encode`.
    :param others: more NamedTuples.
    :return: all NamedTuples in it, and the others, by name.
    """
    found = {name_of(cls): cls for cls in others}
    if hasattr(value, "_fields"):
        found[name_of(type(value))] = type(value)
    if isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            found |= types_of(item)
    return found
