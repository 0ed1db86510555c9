"""
Values and objects to a JSON description and arrays: the contents of checkpoints and files.

An object is described by a dictionary with its "kind"; JSON values stand for themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray
from sklearn.base import BaseEstimator

from ..deep.network import is_layer, names_of
from ..engine.contracts import as_variables
from .known import FUNCTIONS, OF_TFP, TEXTS, full_name, is_book, name_of

#: Types that JSON represents exactly, including floats.
_PLAIN = (type(None), bool, int, float, str)


class Encoder:
    """
    :ivar arrays: the arrays, numbered in the description.
    :ivar networks: networks whose weights are described, in order.
    """

    def __init__(self) -> None:
        self.arrays: list[AnyNDArray] = []
        self.networks: list[Any] = []
        self._seen: dict[int, tuple[int, Any]] = {}  # keeps objects alive, so that no id is reused

    def encode(self, value: Any, place: str) -> Any:
        """
        :param value: numbers, strings, arrays, tensors and objects of known classes, in any
            structure of tuples, lists, dictionaries and NamedTuples.
        :param place: the user's name for it.
        :return: its description.
        :raise TypeError: for objects that cannot be restored.
        """
        if type(value) in _PLAIN:
            return value
        if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            kind = "array" if isinstance(value, np.ndarray) else "scalar"
            return {"kind": kind, "value": self._store(value)}
        if isinstance(value, tf.Tensor):
            return {"kind": "tensor", "value": self._store(value.numpy())}
        if isinstance(value, Mapping | list | tuple):
            return self._structure(value, place)
        return self._other(value, place)

    def _structure(self, value: Any, place: str) -> dict[str, Any]:
        if isinstance(value, Mapping):
            encode, items = self.encode, value.items()
            pairs = [[encode(key, place), encode(v, f"{place}[{key!r}]")] for key, v in items]
            return {"kind": "dict", "pairs": pairs}
        cls = value.__class__  # the class of what TensorFlow wraps: `type` gives the wrapper
        told = {"items": [self.encode(item, f"{place}[{n}]") for n, item in enumerate(value)]}
        if hasattr(cls, "_fields"):
            return {"kind": "named", "class": full_name(cls), **told}
        return {"kind": "tuple" if isinstance(value, tuple) else "list", **told}

    def _other(self, value: Any, place: str) -> dict[str, Any]:
        if id(value) in self._seen:
            return {"kind": "again", "number": self._seen[id(value)][0]}
        if isinstance(value, np.ndarray):  # labels, names
            items = [self.encode(item, f"{place}[{n}]") for n, item in enumerate(value.flat)]
            return {"kind": "objects", "shape": list(value.shape), "items": items}
        if isinstance(value, slice):
            ends = [value.start, value.stop, value.step]
            return {"kind": "slice", "ends": [self.encode(end, place) for end in ends]}
        if function := [name for name, known in FUNCTIONS.items() if value is known]:
            return {"kind": "function", "name": function[0]}
        home, _, own = full_name(type(value)).partition(".")
        if text := TEXTS.get(public := f"{home}.{own.rpartition('.')[2]}"):
            return {"kind": "text", "type": public, "text": text[0](value)}
        if OF_TFP.get(type(value).__name__) is type(value):
            given = self._parts(value.parameters, place)
            return {"kind": "of TFP", "class": type(value).__name__, "arguments": given}
        description = self._object(value, place)
        self._remember(value)
        return description

    def _object(self, value: Any, place: str) -> dict[str, Any]:
        cls = value.__class__
        if name := name_of(cls):
            own = {key: part for key, part in vars(value).items() if not is_book(key)}
            return {"kind": "object", "class": name, "state": self._parts(own, place)}
        if cls is gpflow.Parameter:
            return self._parameter(value, place)
        if isinstance(value, tf.Variable):
            return self._variable(value)
        if is_layer(value):
            return self._network(value)
        raise _refusal(value, place)

    def _remember(self, *values: Any) -> None:
        for value in values:
            self._seen[id(value)] = len(self._seen), value

    def _network(self, value: Any) -> dict[str, Any]:
        # No layers: Keras imports modules and calls functions named in their description.
        self.networks.append(value)
        weights = [self._store(weight) for weight in value.get_weights()]
        self._remember(*as_variables(value.weights))
        return {"kind": "network", "names": names_of(value), "weights": weights}

    def _parameter(self, value: gpflow.Parameter, place: str) -> dict[str, Any]:
        return {
            "kind": "parameter",
            "variable": self._variable(value.unconstrained_variable),
            "shape": list(value.shape),
            "transform": self.encode(value.transform, f"{place}.transform"),
            "prior": self.encode(value.prior, f"{place}.prior"),
            "prior_on": value.prior_on.value,
        }

    def _variable(self, value: Any) -> dict[str, Any]:
        told = {"shape": list(value.shape), "trainable": bool(value.trainable)}
        return {"kind": "variable", "value": self._store(value.numpy()), **told}

    def _parts(self, parts: Mapping[str, Any], place: str) -> dict[str, Any]:
        return {key: self.encode(part, f"{place}.{key}") for key, part in parts.items()}

    def _store(self, value: Any) -> int:
        """:return: the number of the array in the description."""
        self.arrays.append(np.asarray(value))
        return len(self.arrays) - 1


def _refusal(value: Any, place: str) -> TypeError:
    if isinstance(value, BaseEstimator):
        return TypeError(
            f"{place} is a {type(value).__name__}, which a file of gpflow_bsvm cannot hold; what "
            f"would work: {_part_of(value)}joblib.dump for the whole, which runs code when it is "
            "loaded"
        )
    would_do = "gpflow_bsvm.saving.register(cls), for any class"
    if isinstance(value, tfp.bijectors.Bijector | tfp.distributions.Distribution):
        would_do = f"one of {', '.join(OF_TFP)}"
    return TypeError(
        f"{place} is a {full_name(type(value))}, which a file cannot hold; what would work: "
        f"{would_do}, or the values alone, gpflow.utilities.parameter_dict(model), for a model "
        "made as before; joblib.dump, where pickle can, runs code when it is loaded"
    )


def _part_of(value: Any) -> str:
    """:return: the way to save the package's part of a scikit-learn estimator."""
    name = "search.best_estimator_" if hasattr(value, "best_estimator_") else "pipeline"
    value = getattr(value, "best_estimator_", value)
    if hasattr(value, "steps"):
        name, value = f"{name}[-1]", value.steps[-1][1]
    return f"gb.save({name}, path), or " if name_of(type(value)) else ""
