"""Which classes `save` and `load` know: those of the package, and those that a user makes known."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from .known import KNOWN
from .recipes import Argument, Recipe, fields

_BY_CLASS = {recipe.cls: name for name, recipe in KNOWN.items()}
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_registered: dict[str, Recipe] = {}


def register(cls: type, **arguments: Argument) -> type:
    """
    Make any class known to `save` and `load`, your own or a library's, such as a kernel or a mean
    function. What a file tells of it are the arguments of its constructor, and the parameters that
    it holds; its code is not in the file, so that the process that loads has to call this too. A
    file chooses the arguments: register no class whose constructor does what a stranger must not.

    The constructor is called with 0.5 in the place of the values of parameters, which are set
    afterwards. An object that this does not bring back as it was is refused by `save`.

    :param cls: a class; also as a decorator.
    :param arguments: of its constructor: the attribute that holds it, or a function of the object;
        without one the attribute of the same name.
    :return: the class.
    :raise TypeError: for what is no class, or arguments that its constructor does not take.
    """
    if not isinstance(cls, type):
        raise TypeError(f"register takes a class, such as type({cls!r})")
    found = fields(cls) if dataclasses.is_dataclass(cls) else _of_constructor(cls)
    unknown = set(arguments) - set(found)
    if unknown:
        raise TypeError(
            f"the constructor of {cls.__name__} takes {tuple(found)}, got {sorted(unknown)}"
        )
    _registered[name_of(cls)] = Recipe(cls, {**found, **arguments})
    return cls


def _of_constructor(cls: Any) -> dict[str, Argument]:
    _, *parameters = inspect.signature(cls.__init__).parameters.values()
    return {p.name: p.name for p in parameters if p.kind not in _VARIADIC}


def name_of(cls: type) -> str:
    """:return: by which a file calls the class."""
    return _BY_CLASS.get(cls) or f"{cls.__module__}.{cls.__qualname__}"


def recipe_of(cls: type) -> Recipe | None:
    """:return: how objects of exactly this class are made again; None: not known."""
    recipe = find(name_of(cls))
    return recipe if recipe is not None and recipe.cls is cls else None


def find(name: str) -> Recipe | None:
    """:return: the recipe by the name of its class, if there is one."""
    return KNOWN.get(name) or _registered.get(name)
