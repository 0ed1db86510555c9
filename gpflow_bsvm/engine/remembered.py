"""A cache of results computed from a model's parameters, until a parameter changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import gpflow
import numpy as np
import tensorflow as tf

from .structure import look_into

T = TypeVar("T")


#: By model and name: the key, the referenced buffers, and the result.
_KNOWN: WeakKeyDictionary[Any, dict[str, tuple[Any, ...]]] = WeakKeyDictionary()
_LOCK = threading.RLock()


def remembered(model: object, name: str, parts: tuple[Any, ...], compute: Callable[[], T]) -> T:
    """
    Cache a result. Assigning to a variable allocates a new buffer while the old one is referenced.
    Holding references to all parameters' buffers and comparing addresses therefore detects every
    change, without comparing numbers.

    :param model: the owner; the cache does not keep it alive.
    :param name: the name of the result.
    :param parts: all parameters and modules that the result depends on.
    :return: `compute()`, or its earlier result if `parts` have not changed since. Nothing is cached
        in a graph, or if `parts` contain user code.
    """
    structure = look_into(parts) if tf.executing_eagerly() else None
    if structure is None or not structure.is_proved:
        return compute()
    config = gpflow.config.config()
    variables = [p.unconstrained_variable for p in structure.parameters]
    held = [np.asarray(memoryview(variable.value())) for variable in variables]
    key = structure.key, config.float, config.jitter, *(memory.ctypes.data for memory in held)
    with _LOCK:
        known = _KNOWN.get(model, {}).get(name)
    if known is None or known[0] != key:
        known = key, held, compute()
        with _LOCK:
            _KNOWN.setdefault(model, {})[name] = known
    answer: T = known[-1]
    return answer
