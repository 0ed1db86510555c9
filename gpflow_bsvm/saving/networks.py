"""Networks of Keras in a file: what Keras says of their layers, which must be known ones."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from gpflow.keras import tf_keras

from ..deep.network import is_keras_3

#: Of classes that need no registration.
_HOMES = ("keras", "tf_keras", "builtins")


def describe(network: Any) -> dict[str, Any]:
    """
    :return: Keras and configuration of a layer or model, as JSON has it, without weights.
    :raise TypeError: if it holds functions, or a layer that Keras does not know.
    """
    name = "keras" if is_keras_3(network) else "tf_keras"
    told = json.loads(json.dumps(_keras(name).saving.serialize_keras_object(network)))
    _check(name, told)
    return {"keras": name, "layers": told}


def make(described: dict[str, Any]) -> Any:
    """
    :return: a network as `describe` has told it, its weights not yet those.
    :raise ValueError: for a description with functions, or a layer that Keras does not know here.
    """
    name, told = described["keras"], described["layers"]
    if name not in ("keras", "tf_keras"):
        raise ValueError(f"it holds a network of {name!r}, which is no Keras")
    try:
        _check(name, told)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return _keras(name).saving.deserialize_keras_object(copy.deepcopy(told), safe_mode=True)


def _keras(name: str) -> ModuleType:
    if name == "tf_keras":
        return tf_keras  # type: ignore[no-any-return]
    import keras

    return keras  # type: ignore[no-any-return]


def _check(name: str, told: Any) -> None:
    """What Keras would import by its name, or run, is not let through."""
    for part in _objects(told):
        cls, home = part["class_name"], str(part.get("module") or "builtins").partition(".")[0]
        registered = part.get("registered_name")
        known = registered and _keras(name).saving.get_registered_object(registered) is not None
        code = "lambda" in str(cls).lower() or cls in ("function", "__typespec__")
        if code or not (known or (home in _HOMES and registered in (None, cls))):
            raise TypeError(
                f"the network holds a {cls} of {part.get('module')}, which a file cannot tell: use "
                "layers of Keras, or make your own layer known by "
                f"{name}.saving.register_keras_serializable()"
            )


def _objects(told: Any) -> Iterator[dict[str, Any]]:
    """:return: all that Keras would make an object of."""
    if isinstance(told, dict):
        if "class_name" in told:
            yield told
        for part in told.values():
            yield from _objects(part)
    elif isinstance(told, list):
        for part in told:
            yield from _objects(part)
