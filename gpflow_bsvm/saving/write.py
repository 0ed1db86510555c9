"""Objects to a description, which is JSON, and arrays."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, cast

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray

from ..deep.network import is_layer
from ..engine.structure import BOOKKEEPING, structure_of
from . import networks
from .known import FUNCTIONS, PRIORS, TRANSFORMS
from .read import Reader, is_held
from .recipes import Recipe
from .registry import name_of, recipe_of

#: What JSON tells as it is, floats to the last bit.
_PLAIN = (type(None), bool, int, float, str)


class Writer:
    """
    :ivar arrays: those that the description names by their numbers.
    """

    def __init__(self) -> None:
        self.arrays: list[AnyNDArray] = []
        self._known: dict[int, int] = {}
        self._objects: list[tuple[str, Any]] = []  # also keeps their ids from being used again
        self._networks: list[Any] = []  # None for those that the file tells

    def write(self, value: Any, path: str) -> Any:
        """
        :param path: what a user calls it.
        :return: its description.
        :raise TypeError: for an object that cannot be made again by `Reader`, or not as it is.
        """
        description = self.describe(value, path)
        with warnings.catch_warnings():  # of what it is made of, once is enough
            warnings.simplefilter("ignore")
            reader = Reader(self.arrays, self._networks, path)
            try:
                reader.read(description)
            except Exception as error:  # whatever a constructor says of its own arguments
                raise TypeError(
                    f"{reader.place} would not be made again by load: {error}"
                ) from error
        for (place, original), copy in zip(self._objects, reader.objects):
            if recipe_of(original.__class__):
                _check_same(original, copy, place)
        return description

    def describe(self, value: Any, path: str) -> Any:
        """See `write`."""
        if type(value) in _PLAIN:
            return value
        if id(value) in self._known:
            return {"kind": "again", "number": self._known[id(value)]}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, path)
        if isinstance(value, tf.Tensor):
            return {"kind": "tensor", "value": self._store(value.numpy())}
        if isinstance(value, slice):
            ends = [value.start, value.stop, value.step]
            return {"kind": "slice", "ends": [self.describe(end, path) for end in ends]}
        for name, function in FUNCTIONS.items():
            if value is function:
                return {"kind": "function", "name": name}
        return self._object(value, path)

    def _object(self, value: Any, path: str) -> Any:
        cls = value.__class__  # of what TensorFlow wraps, where `type` tells the wrapper
        if recipe := recipe_of(cls):
            description = self._by_recipe(value, recipe, path)
        elif cls is gpflow.Parameter:
            description = self._parameter(value, path)
        elif isinstance(value, tf.Variable):
            description = self._variable(value)
        elif is_layer(value):
            description = self._network(value, path)
        elif isinstance(value, np.random.RandomState):
            _, key, position, *gauss = value.get_state()
            state = {"value": self._store(key), "position": position, "gauss": gauss}
            description = {"kind": "random state", **state}
        elif isinstance(value, tfp.bijectors.Bijector | tfp.distributions.Distribution):
            return self._of_tfp(value, path)
        else:
            return self._container(value, path)
        self._known[id(value)] = len(self._objects)
        self._objects.append((path, value))
        return description

    def _by_recipe(self, value: Any, recipe: Recipe, path: str) -> Any:
        arguments = {}
        for name, source in recipe.arguments.items():
            argument = _read(value, source, path) if isinstance(source, str) else source(value)
            place = f"{path}.{name}"
            if isinstance(value, tf.Module) and isinstance(
                argument, tf.Variable | gpflow.Parameter
            ):
                arguments[name] = _start(argument)  # the state holds it
            else:
                arguments[name] = self.describe(argument, place)
        state = {
            name: self.describe(_read(value, name, path), f"{path}.{name}")
            for name in _state(value, recipe)
        }
        name = name_of(recipe.cls)
        return {"kind": "object", "class": name, "arguments": arguments, "state": state}

    def _network(self, value: Any, path: str) -> Any:
        weights = [self._store(weight) for weight in value.get_weights()]
        told = networks.describe(value)
        if told["layers"] is None:
            warnings.warn(
                f"{path} has layers that a file cannot tell, and is saved as weights only: make "
                "the network as it was made here, and gpflow_bsvm.load(path, network=...)",
                stacklevel=2,
            )
        self._networks.append(None if told["layers"] else value)
        return {"kind": "network", **told, "weights": weights}

    def _parameter(self, value: gpflow.Parameter, path: str) -> Any:
        return {
            "kind": "parameter",
            "variable": self._variable(value.unconstrained_variable),
            "shape": _open(value.shape),
            "transform": self.describe(value.transform, f"{path}.transform"),
            "prior": self.describe(value.prior, f"{path}.prior"),
            "prior_on": value.prior_on.value,
        }

    def _variable(self, value: Any) -> Any:
        return {
            "kind": "variable",
            "value": self._store(value.numpy()),
            "shape": _open(value.shape),
            "trainable": bool(value.trainable),
        }

    def _of_tfp(self, value: Any, path: str) -> Any:
        cls = type(value)
        kind, known = "transform", TRANSFORMS
        if isinstance(value, tfp.distributions.Distribution):
            kind, known = "prior", PRIORS
        if known.get(cls.__name__) is not cls:
            raise _refusal(value, path, f"a {kind} that is one of {', '.join(known)}")
        given = {
            name: self.describe(part, f"{path}.{name}")
            for name, part in value.parameters.items()
            if part is not None and part is not False
        }
        return {"kind": kind, "class": cls.__name__, "arguments": given}

    def _container(self, value: Any, path: str) -> Any:
        if isinstance(value, Mapping):
            pairs = [
                [self.describe(key, path), self.describe(item, f"{path}[{key!r}]")]
                for key, item in value.items()
            ]
            return {"kind": "dict", "pairs": pairs}
        if isinstance(value, list) and _stacks(value):
            return {"kind": "rows", "value": self._store(np.stack(value))}
        if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            items = [self.describe(item, f"{path}[{n}]") for n, item in enumerate(value)]
            return {"kind": "tuple" if isinstance(value, tuple) else "list", "items": items}
        raise _refusal(value, path, "gpflow_bsvm.saving.register(cls), for any class")

    def _array(self, value: Any, path: str) -> Any:
        if value.dtype.hasobject:  # labels, names
            items = [self.describe(item, f"{path}[{n}]") for n, item in enumerate(value.flat)]
            return {"kind": "objects", "shape": list(value.shape), "items": items}
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return {"kind": kind, "value": self._store(value)}

    def _store(self, value: Any) -> int:
        self.arrays.append(np.asarray(value))
        return len(self.arrays) - 1


def _start(parameter: Any) -> Any:
    """:return: what a constructor is given in its place."""
    shape = tf.convert_to_tensor(parameter).shape
    return {"kind": "start", "shape": list(shape), "dtype": parameter.dtype.name}


def _state(value: Any, recipe: Recipe) -> list[str]:
    """:return: names of what is set after the constructor was called."""
    found = vars(value) if hasattr(value, "__dict__") else {}
    leaves = [name for name, part in found.items() if is_held(part)]
    given = [name for name in recipe.state if name in found or not name.endswith("_")]
    return [*given, *(name for name in leaves if name not in recipe.state)]


def _read(value: Any, name: str, path: str) -> Any:
    if not hasattr(value, name):
        kind = type(value).__name__
        raise TypeError(
            f"{path}: {kind} has no attribute {name!r}, which its constructor takes; say where it "
            f"is: gpflow_bsvm.saving.register({kind}, {name}=...)"
        )
    return getattr(value, name)


def _stacks(items: list[Any]) -> bool:
    """:return: whether these are arrays of one shape, as those of a history."""
    kinds = {(item.shape, item.dtype) if type(item) is np.ndarray else None for item in items}
    return len(kinds) == 1 and None not in kinds and not items[0].dtype.hasobject


def _open(shape: tf.TensorShape) -> list[int | None]:
    return cast(list[int | None], list(shape))


def _check_same(original: Any, copy: Any, path: str) -> None:
    """:raise TypeError: if the copy is another in its structure, or lacks an attribute."""
    kind = type(original).__name__
    lost = _attributes(original) - _attributes(copy)
    if lost:
        raise TypeError(
            f"{path}: {kind} has attributes that a file cannot hold, {sorted(lost)}; delete them, "
            "or use joblib.dump, which keeps everything"
        )
    (one, _), (two, _) = structure_of((original,)), structure_of((copy,))
    comparable = "identity" not in (one[0], two[0])  # type: ignore[index]
    if comparable and one != two:
        raise TypeError(
            f"{path}: {kind} would not come back as it is: an attribute is neither a parameter nor "
            "an argument of its constructor; use joblib.dump, which keeps everything"
        )


def _attributes(value: Any) -> set[str]:
    found = vars(value) if hasattr(value, "__dict__") else {}
    return {name for name in found if name not in BOOKKEEPING and not name.startswith("_self_")}


def _refusal(value: Any, path: str, otherwise: str) -> TypeError:
    cls = value if isinstance(value, type) else type(value)
    return TypeError(
        f"{path} is {'the class' if value is cls else 'a'} {cls.__module__}.{cls.__qualname__}, "
        f"which gpflow_bsvm.save does not know how to make again; what would work: {otherwise}, "
        "or joblib.dump, which keeps everything and runs code when it is loaded"
    )
