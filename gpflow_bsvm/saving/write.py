"""Objects to a description, which is JSON, and arrays."""

from __future__ import annotations

import warnings
from typing import Any, cast

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from ..deep.network import is_layer
from ..engine.structure import BOOKKEEPING, structure_of
from . import networks
from .encoding import Encoder
from .known import FUNCTIONS, PRIORS, TRANSFORMS, arguments_of, is_registered, name_of, state_of
from .read import Reader, is_held


class Writer(Encoder):
    """As `Encoder`, of objects of known classes, too."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, int] = {}
        self._objects: list[tuple[str, Any]] = []  # also keeps their ids from being used again
        self._networks: list[Any] = []  # None for those that the file tells

    def write(self, value: Any, place: str) -> Any:
        """
        :return: its description, from which `Reader` has made it once.
        :raise TypeError: for an object that cannot be made again, or not as it is.
        """
        description = self.encode(value, place)
        with warnings.catch_warnings():  # of what it is made of, once is enough
            warnings.simplefilter("ignore")
            reader = Reader(self.arrays, self._networks, place)
            try:
                reader.decode(description)
            except Exception as error:  # whatever a constructor says of its own arguments
                raise TypeError(
                    f"{reader.place} would not be made again by load: {error}"
                ) from error
        for (part, original), copy in zip(self._objects, reader.objects):
            if name_of(original.__class__):
                _check_same(original, copy, part)
        return description

    def other(self, value: Any, place: str) -> Any:
        """See `Encoder`."""
        if id(value) in self._known:
            return {"kind": "again", "number": self._known[id(value)]}
        if isinstance(value, np.ndarray):  # labels, names
            items = [self.encode(item, f"{place}[{n}]") for n, item in enumerate(value.flat)]
            return {"kind": "objects", "shape": list(value.shape), "items": items}
        if isinstance(value, slice):
            ends = [value.start, value.stop, value.step]
            return {"kind": "slice", "ends": [self.encode(end, place) for end in ends]}
        for name, function in FUNCTIONS.items():
            if value is function:
                return {"kind": "function", "name": name}
        if isinstance(value, tfp.bijectors.Bijector | tfp.distributions.Distribution):
            return self._of_tfp(value, place)
        description = self._object(value, place)
        self._known[id(value)] = len(self._objects)
        self._objects.append((place, value))
        return description

    def _object(self, value: Any, place: str) -> Any:
        cls = value.__class__  # of what TensorFlow wraps, where `type` tells the wrapper
        if name := name_of(cls):
            return self._of_class(value, name, place)
        if cls is gpflow.Parameter:
            return self._parameter(value, place)
        if isinstance(value, tf.Variable):
            return self._variable(value)
        if is_layer(value):
            return self._network(value, place)
        if isinstance(value, np.random.RandomState):
            _, key, position, *gauss = value.get_state()
            state = {"value": self.store(key), "position": position, "gauss": gauss}
            return {"kind": "random state", **state}
        raise _refusal(value, place, "gpflow_bsvm.saving.register(cls), for any class")

    def _of_class(self, value: Any, name: str, place: str) -> Any:
        arguments, cls = {}, value.__class__
        for argument, source in arguments_of(cls).items():
            if isinstance(source, str) and not hasattr(value, source):
                _check_lacked(cls, argument, source, place)
                continue  # the constructor has a default, or says so when it is made once
            part = getattr(value, source) if isinstance(source, str) else source(value)
            if isinstance(value, tf.Module) and is_held(part):
                arguments[argument] = _start(part)  # the state holds it
            else:
                arguments[argument] = self.encode(part, f"{place}.{argument}")
        state = {
            one: self.encode(getattr(value, one), f"{place}.{one}") for one in _state_in(value)
        }
        return {"kind": "object", "class": name, "arguments": arguments, "state": state}

    def _network(self, value: Any, place: str) -> Any:
        weights = [self.store(weight) for weight in value.get_weights()]
        told = networks.describe(value)
        if told["layers"] is None:
            warnings.warn(
                f"{place} has layers that a file cannot tell, and is saved as weights only: make "
                "the network as it was made here, and gpflow_bsvm.load(path, network=...)",
                stacklevel=2,
            )
        self._networks.append(None if told["layers"] else value)
        return {"kind": "network", **told, "weights": weights}

    def _parameter(self, value: gpflow.Parameter, place: str) -> Any:
        return {
            "kind": "parameter",
            "variable": self._variable(value.unconstrained_variable),
            "shape": _open(value.shape),
            "transform": self.encode(value.transform, f"{place}.transform"),
            "prior": self.encode(value.prior, f"{place}.prior"),
            "prior_on": value.prior_on.value,
        }

    def _variable(self, value: Any) -> Any:
        return {
            "kind": "variable",
            "value": self.store(value.numpy()),
            "shape": _open(value.shape),
            "trainable": bool(value.trainable),
        }

    def _of_tfp(self, value: Any, place: str) -> Any:
        cls = type(value)
        kind, known = "transform", TRANSFORMS
        if isinstance(value, tfp.distributions.Distribution):
            kind, known = "prior", PRIORS
        if known.get(cls.__name__) is not cls:
            raise _refusal(value, place, f"a {kind} that is one of {', '.join(known)}")
        given = {
            name: self.encode(part, f"{place}.{name}")
            for name, part in value.parameters.items()
            if part is not None and part is not False
        }
        return {"kind": kind, "class": cls.__name__, "arguments": given}


def _start(parameter: Any) -> Any:
    """:return: the value that a constructor is given instead."""
    shape = tf.convert_to_tensor(parameter).shape
    return {"kind": "start", "shape": list(shape), "dtype": parameter.dtype.name}


def _state_in(value: Any) -> list[str]:
    """:return: names of what is set after the constructor was called."""
    found, allowed = getattr(value, "__dict__", {}), state_of(value.__class__)
    leaves = [name for name, part in found.items() if is_held(part) and name not in allowed]
    return [*(name for name in allowed if name in found), *leaves]


def _check_lacked(cls: type, argument: str, attribute: str, place: str) -> None:
    """:raise TypeError: if a user's class keeps an argument elsewhere."""
    if is_registered(cls):
        raise TypeError(
            f"{place}: {cls.__name__} has no attribute {attribute!r}, which its constructor takes; "
            f"say where it is: gpflow_bsvm.saving.register({cls.__name__}, {argument}=...)"
        )


def _open(shape: tf.TensorShape) -> list[int | None]:
    return cast(list[int | None], list(shape))


def _check_same(original: Any, copy: Any, place: str) -> None:
    """:raise TypeError: if the copy is another in its structure, or lacks an attribute."""
    kind = type(original).__name__
    lost = _attributes(original) - _attributes(copy)
    if lost:
        raise TypeError(
            f"{place}: {kind} has attributes that a file cannot hold, {sorted(lost)}; delete them, "
            "or use joblib.dump, which keeps everything"
        )
    (one, _), (two, _) = structure_of((original,)), structure_of((copy,))
    comparable = "identity" not in (one[0], two[0])  # type: ignore[index]
    if comparable and one != two:
        raise TypeError(
            f"{place}: {kind} would not come back as it is: an attribute is neither a parameter "
            "nor an argument of its constructor; use joblib.dump, which keeps everything"
        )


def _attributes(value: Any) -> set[str]:
    found = getattr(value, "__dict__", {})
    return {name for name in found if name not in BOOKKEEPING and not name.startswith("_self_")}


def _refusal(value: Any, place: str, otherwise: str) -> TypeError:
    cls = value if isinstance(value, type) else type(value)
    return TypeError(
        f"{place} is {'the class' if value is cls else 'a'} {cls.__module__}.{cls.__qualname__}, "
        f"which gpflow_bsvm.save does not know how to make again; what would work: {otherwise}, "
        "or the values alone, gpflow.utilities.parameter_dict(model), for a model made as before; "
        "joblib.dump, where pickle can, runs code when it is loaded"
    )
