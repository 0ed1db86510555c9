"""How an object is made again from a file: arguments, and what is set afterwards."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

#: An attribute by its name, or what is made of the object.
Argument = str | Callable[[Any], Any]
#: Of a value that a file gives: whether it may be what it is said to be.
Fits = Callable[[Any], bool]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """
    How an object is made again.

    :ivar arguments: of the constructor, and where each is read from.
    :ivar state: attributes that are set afterwards, and what tells whether a value may be one.
        Those that hold a parameter or a variable are set in any case.
    """

    cls: type
    arguments: Mapping[str, Argument]
    state: Mapping[str, Fits] = dataclasses.field(default_factory=dict)


def same(names: str, **others: Argument) -> dict[str, Argument]:
    """:return: arguments that are attributes of the same names, and others."""
    return {**{name: name for name in names.split()}, **others}


def fields(cls: Any) -> dict[str, Argument]:
    """:return: the arguments of a dataclass or NamedTuple."""
    names = getattr(cls, "_fields", None) or [f.name for f in dataclasses.fields(cls) if f.init]
    return {name: name for name in names}


def is_a(*types: Any) -> Fits:
    """:return: a test for these classes."""
    return lambda value: isinstance(value, types)


def is_positive(value: Any) -> bool:
    """:return: whether it is a number above 0, or None."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return value is None or bool(number and 0 < value < np.inf)


def recipes(
    home: ModuleType, names: str, arguments: Mapping[str, Argument], **state: Fits
) -> dict[str, Recipe]:
    """:return: recipes by public names, which stay if a class moves."""
    cls = {name: getattr(home, name) for name in names.split()}
    return {f"{home.__name__}.{name}": Recipe(c, arguments, state) for name, c in cls.items()}
