"""Classes allowed in a file: classes of GPflow and this package, and registered classes."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.likelihoods import utils as links
from sklearn.preprocessing import StandardScaler

from .. import inference, likelihoods, models  # noqa: F401 - allows their classes
from ..checkpoints.values import full_name, loaded
from ..engine.structure import BOOKKEEPING
from ..estimators import BSVMClassifier, BSVMRegressor, OneClassBSVM

#: Modules whose classes are all allowed: they hold only parameters, numbers and each other.
_HOMES = (
    *(f"gpflow.{home}." for home in ["kernels", "functions", "inducing_variables", "likelihoods"]),
    *(f"gpflow_bsvm.{home}." for home in ["likelihoods", "models", "deep", "inference", "papers"]),
    "gpflow_bsvm.sampling.",
)
_MORE = {gpflow.models.SVGP, gpflow.quadrature.NDiagGHQuadrature, StandardScaler}
_MORE |= {BSVMClassifier, BSVMRegressor, OneClassBSVM}
_registered: dict[str, type] = {}


def register(cls: type) -> type:
    """
    Register a class, such as your own kernel or a library's mean function, for `save` and `load`.
    A file holds attributes but no code, so the loading process must register the class too. Loading
    calls no constructor and takes attributes from the file: do not register a class if an attacker
    who sets its attributes could make its methods dangerous.

    :param cls: a class (`register` is also a decorator).
    :return: the class.
    :raise TypeError: unless it is a class.
    """
    if not isinstance(cls, type):
        raise TypeError(f"register takes a class, such as type({cls!r})")
    _registered[full_name(cls)] = cls
    return cls


def find_class(name: str) -> type | None:
    """:return: the class of this name if it is known; else None."""
    cls = _registered.get(name) or loaded(name)
    return cls if isinstance(cls, type) and _is_known(cls) else None


def name_of(cls: type) -> str | None:
    """:return: the class's name in a file, public if possible; None if unknown."""
    public = f"{'.'.join(cls.__module__.split('.')[:2])}.{cls.__name__}"
    return next((name for name in (public, full_name(cls)) if find_class(name) is cls), None)


def _is_known(cls: type) -> bool:
    plain = issubclass(cls, tf.Module) or dataclasses.is_dataclass(cls)
    at_home = plain and f"{cls.__module__}.".startswith(_HOMES)
    return at_home or cls in _MORE or _registered.get(full_name(cls)) is cls


def is_book(attribute: str) -> bool:
    """:return: True if the attribute is TensorFlow's bookkeeping."""
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
    for number in _numbers(value):
        if np.isnan(number).any() or not (free or np.isfinite(number).all()):
            raise ValueError(f"numbers must be finite, got {np.ravel(number)[:4]}")


def _numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)
    elif isinstance(value, float | np.ndarray | np.generic | tf.Tensor):
        array = np.asarray(value)
        yield array if array.dtype.kind in "fc" else 0.0


#: Functions allowed as likelihoods' arguments.
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
