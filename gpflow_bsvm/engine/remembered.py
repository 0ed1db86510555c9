"""What was computed of a model's parameters, kept until one of them moves."""

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


#: By model and name: the key, the memory that it speaks of, and the answer.
_KNOWN: WeakKeyDictionary[Any, dict[str, tuple[Any, ...]]] = WeakKeyDictionary()
_LOCK = threading.RLock()


def remembered(model: object, name: str, parts: tuple[Any, ...], compute: Callable[[], T]) -> T:
    """
    A variable that is assigned to gets memory of its own as long as somebody holds what it had
    before. So holding the memory of all parameters, and comparing addresses, tells for certain
    whether any has moved, without comparing numbers.

    :param model: the owner, which is not kept alive.
    :param name: of the answer.
    :param parts: parameters and modules, all that the answer depends on.
    :return: `compute()`, or what that was while `parts` have been as they are. With code that is no
        library's among them, or in a graph, nothing is kept.
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
