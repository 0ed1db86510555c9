"""What other libraries' data are opened by: rooms that the core does not know by name."""

from __future__ import annotations

import importlib
from typing import Any

#: An attribute that such data have, and the module and function (X, Y, weight) that reads them.
_DOORS: dict[str, tuple[str, str]] = {}


def add_door(attribute: str, module: str, function: str) -> None:
    """
    :param attribute: of all data that this is for, such as "__dask_graph__".
    :param module: which is imported when such data come.
    :param function: its function (X, Y, weight) -> `gpflow_bsvm.data.Reader`.
    """
    _DOORS[attribute] = module, function


def has_door(X: Any) -> bool:
    """:return: True if X is another library's data."""
    return any(hasattr(X, attribute) for attribute in _DOORS)


def read_through(X: Any, Y: Any = None, weight: Any = None) -> Any:
    """:return: the `Reader` of another library's data, see `has_door`."""
    module, function = next(door for name, door in _DOORS.items() if hasattr(X, name))
    return getattr(importlib.import_module(module), function)(X, Y, weight)
