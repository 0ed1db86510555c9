"""Data of other libraries; the subpackage for them is imported only if they are used."""

from __future__ import annotations

import importlib
from typing import Any


def has_door(X: Any) -> bool:
    """:return: True if X is of Dask."""
    return hasattr(X, "__dask_graph__")


def read_through(X: Any, Y: Any = None, weight: Any = None) -> Any:
    """:return: the `gpflow_bsvm.data.Reader` of such data, whose subpackage is imported now."""
    return importlib.import_module("gpflow_bsvm.cluster").dask_reader(X, Y, weight)
