"""Convert objects of known classes to a description and arrays, and safely back."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray
from gpflow.likelihoods import utils as links
from sklearn.base import BaseEstimator

from .. import inference, likelihoods, models  # noqa: F401 - allows their classes
from ..checkpoints.values import ValueDecoder, ValueEncoder, full_name, loaded
from ..deep.network import is_layer, names_of, with_weights
from ..engine.contracts import as_variables
from ..engine.structure import BOOKKEEPING
from ..estimators import BSVMClassifier, BSVMRegressor, OneClassBSVM
from ..estimators.scaling import ColumnScaler

#: Modules whose classes are all allowed, because they hold only parameters, numbers and each other.
_HOMES = (
    *(f"gpflow.{home}." for home in ["kernels", "functions", "inducing_variables", "likelihoods"]),
    *(f"gpflow_bsvm.{home}." for home in ["likelihoods", "models", "deep", "inference", "papers"]),
    "gpflow_bsvm.sampling.",
)
_MORE = {gpflow.models.SVGP, gpflow.quadrature.NDiagGHQuadrature, ColumnScaler}
_MORE |= {BSVMClassifier, BSVMRegressor, OneClassBSVM}
_registered: dict[str, type] = {}


def register(cls: type) -> type:
    """
    Register a class, such as your own kernel or a library's mean function, for `save` and `load`. A
    file holds attributes but no code, so the loading process must register the class too. Loading
    calls no constructor, and sets attributes from the file: do not register a class whose methods
    become dangerous if an attacker sets its attributes.

    :param cls: a class (so `register` is also a decorator).
    :return: the class.
    :raise TypeError: unless it is a class.
    """
    if not isinstance(cls, type):
        raise TypeError(f"register takes a class, such as type({cls!r})")
    _registered[full_name(cls)] = cls
    return cls


def find_class(name: str) -> type | None:
    """:return: the class of this name, or None if it is unknown."""
    cls = _registered.get(name) or loaded(name)
    if not isinstance(cls, type):
        return None
    plain = issubclass(cls, tf.Module) or dataclasses.is_dataclass(cls)
    at_home = plain and f"{cls.__module__}.".startswith(_HOMES)
    return cls if at_home or cls in _MORE or cls in _registered.values() else None


def name_of(cls: type) -> str | None:
    """:return: the class's name in a file, if possible a public name; None if it is unknown."""
    public = f"{'.'.join(cls.__module__.split('.')[:2])}.{cls.__name__}"
    return next((name for name in (public, full_name(cls)) if find_class(name) is cls), None)


def is_book(attribute: str) -> bool:
    """:return: True for an attribute that is part of TensorFlow's bookkeeping."""
    return attribute in BOOKKEEPING or attribute.startswith("_self_")


def may_be_set(cls: type, attribute: str) -> bool:
    """:return: True for data: not a method, property, or attribute of Python or TensorFlow."""
    of_class = inspect.getattr_static(cls, attribute, None)
    internal = is_book(attribute) or attribute.startswith("__")
    return not internal and not hasattr(type(of_class), "__get__")


def check_numbers(cls: type, attribute: str, value: Any) -> None:
    """:raise ValueError: for NaN, and for infinities outside options and users' classes."""
    options = getattr(cls, "_get_param_names", None)
    if options is not None and attribute in options():
        return  # a fit checks them
    free = (options is None and dataclasses.is_dataclass(cls)) or cls in _registered.values()
    kinds = float | np.ndarray | np.generic | tf.Tensor
    numbers = [np.asarray(n) for n in tf.nest.flatten(value) if isinstance(n, kinds)]
    for number in (one for one in numbers if one.dtype.kind in "fc"):
        if np.isnan(number).any() or not (free or np.isfinite(number).all()):
            raise ValueError(f"numbers must be finite, got {number.ravel()[:4]}")


#: Functions that are allowed as arguments of likelihoods.
FUNCTIONS: dict[str, Any] = {
    "inv_probit": links.inv_probit,
    "exp": tf.exp,
    "sigmoid": tf.sigmoid,
    "softplus": tf.nn.softplus,
}


_TRANSFORMS = (
    "Identity Softplus Exp Shift Scale Chain FillTriangular FillScaleTriL Sigmoid Softsign Square "
    "NormalCDF SoftClip Ascending"
)
_PRIORS = (
    "Normal LogNormal Gamma InverseGamma Exponential Beta Uniform HalfNormal HalfCauchy "
    "HalfStudentT Cauchy Laplace Logistic StudentT TruncatedNormal Chi2 Weibull Pareto Gumbel "
    "LogitNormal LogLogistic InverseGaussian MultivariateNormalDiag MultivariateNormalTriL "
    "Independent Sample TransformedDistribution"
)
#: Transforms (each with 0 in its domain) and priors; both store their arguments.
OF_TFP: dict[str, Any] = {
    **{name: getattr(tfp.bijectors, name) for name in _TRANSFORMS.split()},
    **{name: getattr(tfp.distributions, name) for name in _PRIORS.split()},
}


class Encoder(ValueEncoder):
    """:ivar networks: the networks whose weights have been encoded, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.networks: list[Any] = []
        self._seen: dict[int, tuple[int, Any]] = {}  # keeps objects alive, so that no id is reused

    def _object(self, value: Any, place: str) -> dict[str, Any]:
        if id(value) in self._seen:
            return {"kind": "again", "number": self._seen[id(value)][0]}
        if isinstance(value, slice):
            ends = [value.start, value.stop, value.step]
            return {"kind": "slice", "ends": [self.encode(end, place) for end in ends]}
        if function := [name for name, known in FUNCTIONS.items() if value is known]:
            return {"kind": "function", "name": function[0]}
        if OF_TFP.get(type(value).__name__) is type(value):
            own = {name: v for name, v in value.parameters.items() if name != "kwargs_split_fn"}
            told = {"kind": "of TFP", "class": type(value).__name__}
            return told | {"arguments": self._parts(own, place)}
        description = self._new(value, place)
        self._remember([value])
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

    def _remember(self, values: Sequence[Any]) -> None:
        for value in values:
            self._seen[id(value)] = len(self._seen), value

    def _network(self, value: Any) -> dict[str, Any]:
        # Layers are not stored: Keras would import modules and call functions that these name.
        self.networks.append(value)
        weights = [self._store(weight) for weight in value.get_weights()]
        self._remember(as_variables(value.weights))
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


#: Advice for values of classes that are better not registered.
_INSTEAD: dict[Any, str] = {
    tfp.bijectors.Bijector | tfp.distributions.Distribution: f"one of {', '.join(OF_TFP)}",
    np.random.RandomState | np.random.Generator: "a whole number as seed",
    FunctionType: "an object of a registered class with __call__ (gpflow_bsvm.saving.register)",
    gpflow.posteriors.AbstractPosterior: "gb.save(model, path), and after load model.posterior()",
}


def _refusal(value: Any, place: str) -> TypeError:
    if isinstance(value, BaseEstimator):
        return TypeError(
            f"{place} is a {type(value).__name__}, which gpflow_bsvm cannot save; instead, "
            f"use {_part_of(value)}joblib.dump for the whole (loading it runs code)"
        )
    told = (instead for kinds, instead in _INSTEAD.items() if isinstance(value, kinds))
    would_do = next(told, "gpflow_bsvm.saving.register(cls), for any class")
    return TypeError(
        f"{place} is a {full_name(type(value))}, which gpflow_bsvm cannot save; instead, use "
        f"{would_do}, or store only the values, gpflow.utilities.parameter_dict(model), for a "
        "model constructed as before, or use joblib.dump, if pickle works (loading it runs code)"
    )


def _part_of(value: Any) -> str:
    """:return: advice to save the package's part of a scikit-learn estimator."""
    name = "search.best_estimator_" if hasattr(value, "best_estimator_") else "pipeline"
    value = getattr(value, "best_estimator_", value)
    if hasattr(value, "steps"):
        name = f"{name}[-1]"
        value = value.steps[-1][1]
    return f"gb.save({name}, path), or " if name_of(type(value)) else ""


class Decoder(ValueDecoder):
    """
    Restores the values that `Encoder` has described. It imports nothing, and calls no code except
    TensorFlow Probability's transforms and priors.
    """

    def __init__(
        self, arrays: Sequence[AnyNDArray], network: Sequence[Any] = (), name: str = "model"
    ) -> None:
        """:param network: the user's networks, in order, which receive the file's weights."""
        super().__init__(arrays)
        self._objects: list[Any] = []  # in the order of their descriptions
        self._own = iter(network)
        self._path = [name]
        self._kinds |= {
            "again": lambda node: self._objects[node["number"]],
            "function": lambda node: FUNCTIONS[node["name"]],
            "network": self._network,
            "object": self._object,
            "of TFP": lambda node: OF_TFP[node["class"]](**self._parts(node["arguments"])),
            "parameter": self._parameter,
            "slice": lambda node: slice(*map(self.decode, node["ends"])),
            "variable": lambda node: self._made(self._variable(node)),
        }

    @property
    def place(self) -> str:
        """:return: the user's name for the part that is being read."""
        return ".".join(self._path)

    def _parts(self, nodes: Any, cls: type | None = None) -> dict[str, Any]:
        found = {}
        for name, part in nodes.items():
            self._path.append(name)
            found[name] = self.decode(part)
            if cls is not None:
                check_numbers(cls, name, found[name])
            self._path.pop()
        return found

    def _made(self, value: Any) -> Any:
        self._objects.append(value)
        return value

    def _object(self, node: Any) -> Any:
        name = node["class"]
        if (cls := find_class(node["class"])) is None:
            raise ValueError(
                f"it holds a {name}, which is not known here: import the module that defines it "
                "and, if it is your own, call gpflow_bsvm.saving.register(cls) before load"
            )
        if wrong := [key for key in node["state"] if not may_be_set(cls, key)]:
            raise ValueError(f"{wrong[0]!r} of a {name} may not be set by a file")
        made: Any = object.__new__(cls)
        state = self._parts(node["state"], cls)
        if isinstance(made, tf.Module):
            tf.Module.__init__(made)
        for key, part in state.items():  # TensorFlow's own bookkeeping
            (setattr if isinstance(made, tf.Module) else object.__setattr__)(made, key, part)
        return self._made(made)

    def _network(self, node: Any) -> Any:
        weights = [self._array({"value": number}) for number in node["weights"]]
        made = with_weights(next(self._own, None), node["names"], weights)
        self._objects += as_variables(made.weights)
        return self._made(made)

    def _parameter(self, node: Any) -> gpflow.Parameter:
        """Assign to the unconstrained variable: the transform might not restore the last bit."""
        variable = self._variable(node["variable"])
        transform = self.decode(node["transform"])
        if not variable.dtype.is_floating:
            raise ValueError(f"a parameter is of {variable.dtype.name}")
        check_numbers(gpflow.Parameter, "value", variable.numpy())
        start = tf.zeros(variable.value().shape, variable.dtype)
        parameter = gpflow.Parameter(
            transform.forward(start),
            transform=transform,
            prior=self.decode(node["prior"]),
            prior_on=node["prior_on"],
            trainable=variable.trainable,
            dtype=variable.dtype,
            unconstrained_shape=node["variable"]["shape"],
            constrained_shape=node["shape"],
        )
        parameter.unconstrained_variable.assign(variable)
        self._made(parameter)
        return parameter

    def _variable(self, node: Any) -> tf.Variable:
        shape = tf.TensorShape(node["shape"])
        return tf.Variable(self._array(node), trainable=node["trainable"], shape=shape)
