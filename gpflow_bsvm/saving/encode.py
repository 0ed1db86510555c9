"""Objects to a description and arrays, beside the values of `checkpoints.values`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gpflow
import tensorflow as tf
import tensorflow_probability as tfp
from sklearn.base import BaseEstimator

from ..checkpoints.values import ValueEncoder, full_name
from ..deep.network import is_layer, names_of
from ..engine.contracts import as_variables
from .known import FUNCTIONS, OF_TFP, is_book, name_of


class Encoder(ValueEncoder):
    """:ivar networks: those whose weights are described, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.networks: list[Any] = []
        self._seen: dict[int, tuple[int, Any]] = {}  # objects are kept, so that no id is reused

    def _object(self, value: Any, place: str) -> dict[str, Any]:
        if id(value) in self._seen:
            return {"kind": "again", "number": self._seen[id(value)][0]}
        if isinstance(value, slice):
            ends = [value.start, value.stop, value.step]
            return {"kind": "slice", "ends": [self.encode(end, place) for end in ends]}
        if function := [name for name, known in FUNCTIONS.items() if value is known]:
            return {"kind": "function", "name": function[0]}
        if OF_TFP.get(type(value).__name__) is type(value):
            given = self._parts(value.parameters, place)
            return {"kind": "of TFP", "class": type(value).__name__, "arguments": given}
        description = self._new(value, place)
        self._remember(value)
        return description

    def _new(self, value: Any, place: str) -> dict[str, Any]:
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
        # No layers: Keras imports modules and calls functions that a description of them names.
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
    """:return: the way to save the part of a scikit-learn estimator that is of this package."""
    name = "search.best_estimator_" if hasattr(value, "best_estimator_") else "pipeline"
    value = getattr(value, "best_estimator_", value)
    if hasattr(value, "steps"):
        name, value = f"{name}[-1]", value.steps[-1][1]
    return f"gb.save({name}, path), or " if name_of(type(value)) else ""
