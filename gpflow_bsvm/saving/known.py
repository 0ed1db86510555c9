"""What a file may hold: classes of GPflow, of this package, and those that a user makes known."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import functions
from gpflow.likelihoods import utils as links
from sklearn.preprocessing import StandardScaler

from .. import inference, likelihoods, models
from ..estimators import BSVMClassifier, BSVMRegressor, OneClassBSVM
from ..models import linear
from .encoding import full_name

#: An attribute by its name, or what is made of the object.
Argument = str | Callable[[Any], Any]
#: Of a value that a file gives: whether it may be what it is said to be.
Fits = Callable[[Any], bool]

#: Where all classes are known that hold nothing but parameters, numbers and each other.
_HOMES = (
    *(f"gpflow.{home}" for home in ["kernels", "functions", "inducing_variables", "likelihoods"]),
    *(f"gpflow_bsvm.{home}" for home in ["likelihoods", "models", "deep", "inference", "papers"]),
)
_ESTIMATORS = (BSVMClassifier, BSVMRegressor, OneClassBSVM)
_MORE = (gpflow.models.SVGP, gpflow.quadrature.NDiagGHQuadrature, *_ESTIMATORS, StandardScaler)
#: Arguments of base classes that constructors hand on.
_HANDED_ON = {
    *("active_dims", "quadrature", "link", "penalty", "bound", "normalizer", "levels"),
    *("mean_function", "num_latent_gps", "whiten", "num_data"),
}
#: Attributes of base classes, which mean something else than an argument of that name.
_NEVER = {"name": None, "latent_dim": None}
_registered: dict[str, tuple[type, Mapping[str, Argument]]] = {}


def _covariance(kernel: linear.WeightKernel) -> Any:
    """:return: a matrix of the prior covariance's shape; its values are in a parameter."""
    return np.eye(kernel.num_weights) if hasattr(kernel, "root") else np.ones(kernel.variance.shape)


#: Arguments that are no attributes of the same name; None: those that are not told.
_OTHERWISE: dict[type, dict[str, Argument | None]] = {
    functions.Additive: {"first_part": "add_1", "second_part": "add_2"},
    functions.Product: {"first_part": "prod_1", "second_part": "prod_2"},
    functions.Polynomial: {
        "degree": lambda f: int(np.max(np.sum(f.powers, axis=-1))),
        "input_dim": lambda f: int(f.powers.shape[1]),
        "output_dim": lambda f: int(f.w.shape[0]),
    },
    functions.SwitchedMeanFunction: {"meanfunction_list": "functions"},
    gpflow.likelihoods.SwitchedLikelihood: {"likelihood_list": "likelihoods"},
    gpflow.models.SVGP: {
        "q_diag": lambda model: len(model.q_sqrt.shape) == 2,
        **dict.fromkeys(("q_mu", "q_sqrt")),
    },
    likelihoods.Ordinal: {"thresholds": None},  # a parameter, whose shape the classes tell
    linear.WeightKernel: {"prior_covariance": _covariance},
    linear.Weights: {
        "kernel": lambda w: linear.WeightKernel(w.num_inputs, bias=w.shape[0] > w.num_inputs)
    },
    models.LinearBSVM: {
        "num_features": lambda model: model.inducing_variable.num_inputs,
        "bias": lambda model: bool(model.kernel.bias),
    },
}


def _is_a(*types: Any) -> Fits:
    return lambda value: isinstance(value, types)


def _is_positive(value: Any) -> bool:
    """:return: True if it is a number above 0, or None."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return value is None or bool(number and 0 < value < np.inf)


_NUMBER, _ARRAY = _is_a(int, float, np.number), _is_a(np.ndarray)
_OF_ESTIMATORS = {"n_features_in_": _NUMBER, "feature_names_in_": _ARRAY}
_OF_OURS = {
    "model_": _is_a(models.BSVM),
    "penalty_": _NUMBER,
    "scaler_": _is_a(type(None), StandardScaler),
    "history_": _is_a(inference.History),
    **_OF_ESTIMATORS,
}
#: Attributes that are set afterwards, where the constructor does not take them.
_STATE: dict[type, dict[str, Fits]] = {
    gpflow.models.GPModel: {
        "_jitter": _is_positive,
        "num_data": _is_positive,
        "whiten": _is_a(bool),
        "sites": _is_a(likelihoods.Sites),
        "kernel": _is_a(linear.WeightKernel),
        "inducing_variable": _is_a(gpflow.inducing_variables.InducingVariables),
    },
    BSVMClassifier: {"classes_": _ARRAY, "loss_": _is_a(str), **_OF_OURS},
    BSVMRegressor: {**dict.fromkeys(("epsilon_", "y_center_", "y_scale_"), _NUMBER), **_OF_OURS},
    OneClassBSVM: {"offset_": _NUMBER, **_OF_OURS},
    StandardScaler: {
        **dict.fromkeys(("mean_", "var_", "scale_"), _is_a(type(None), np.ndarray)),
        "n_samples_seen_": _is_a(int, np.number, np.ndarray),
        **_OF_ESTIMATORS,
    },
}


def register(cls: type, **arguments: Argument) -> type:
    """
    Make any class known to `save` and `load`, your own or a library's, such as a kernel or a mean
    function. What a file tells of it are the arguments of its constructor, and the parameters that
    it holds; its code is not in the file, so that the process that loads has to call this too. A
    file chooses the arguments: register no class whose constructor does what a stranger must not.

    The constructor is called with 0.5 instead of the values of parameters, which are set
    afterwards. An object that this does not bring back as it was is refused by `save`.

    :param cls: a class; also as a decorator.
    :param arguments: of its constructor: the attribute that holds it, or a function of the object;
        without one the attribute of the same name.
    :return: the class.
    :raise TypeError: for what is no class, or arguments that its constructor does not take.
    """
    if not isinstance(cls, type):
        raise TypeError(f"register takes a class, such as type({cls!r})")
    found = dict.fromkeys(_parameters(cls))
    unknown = set(arguments) - set(found)
    if unknown:
        raise TypeError(
            f"the constructor of {cls.__name__} takes {tuple(found)}, got {sorted(unknown)}"
        )
    _registered[full_name(cls)] = cls, {name: arguments.get(name, name) for name in found}
    return cls


def find(name: str) -> type | None:
    """:return: the class of this name, if it is known."""
    cls = _known(len(sys.modules)).get(name)
    return cls or _registered.get(name, (None,))[0]


def name_of(cls: type) -> str | None:
    """:return: the class's name in a file, the public one if there is one; None: not known."""
    home = ".".join(cls.__module__.split(".")[:2])
    public = f"{home}.{cls.__name__}"
    name = public if find(public) is cls else full_name(cls)
    return name if find(name) is cls else None


def arguments_of(cls: type) -> Mapping[str, Argument]:
    """:return: arguments that an object of a known class is made with, and where each is read."""
    if is_registered(cls):
        return _registered[full_name(cls)][1]
    otherwise = _OTHERWISE.get(cls, {})
    named: dict[str, Argument | None] = {name: name for name in _parameters(cls)}
    found = {**named, **_handed_on(cls), **_NEVER, **otherwise}
    return {name: source for name, source in found.items() if source is not None}


def is_registered(cls: type) -> bool:
    """:return: True if a user has made it known, and said where its arguments are."""
    return full_name(cls) in _registered


def state_of(cls: type) -> Mapping[str, Fits]:
    """:return: attributes that are set afterwards, and what tells whether a value may be one."""
    found = [state for base, state in _STATE.items() if issubclass(cls, base)]
    taken = arguments_of(cls)
    return {name: fits for state in found for name, fits in state.items() if name not in taken}


def _parameters(cls: Any) -> list[str]:
    """:return: names of what the constructor takes."""
    _, *parameters = inspect.signature(cls.__init__).parameters.values()
    return [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _handed_on(cls: Any) -> dict[str, str]:
    """:return: arguments of base classes that the constructor takes as `kwargs`."""
    found: dict[str, str] = {}
    for base in cls.__mro__:
        if "__init__" in vars(base) and base is not object:
            found |= {name: name for name in _parameters(base) if name in _HANDED_ON}
            kinds = [p.kind for p in inspect.signature(base.__init__).parameters.values()]
            if inspect.Parameter.VAR_KEYWORD not in kinds:
                break
    return found


@functools.lru_cache(maxsize=1)
def _known(num_modules: int) -> dict[str, type]:
    """:return: classes by name, of as many modules as are imported now."""
    found: dict[str, type] = {}
    for module_name, module in list(sys.modules.items()):
        if any(f"{module_name}.".startswith(f"{home}.") for home in _HOMES):
            for name, cls in vars(module).items():
                if isinstance(cls, type) and _is_plain(cls, module_name):
                    found[f"{module_name}.{name}"] = cls
    public = {f"{'.'.join(cls.__module__.split('.')[:2])}.{cls.__name__}": cls for cls in _MORE}
    return found | public


def _is_plain(cls: Any, home: str) -> bool:
    """:return: True if it is defined in this room, and is made of what a file may hold."""
    here = cls.__module__.split(".")[:2] == home.split(".")[:2]
    plain = issubclass(cls, tf.Module) or dataclasses.is_dataclass(cls)
    return here and plain and not inspect.isabstract(cls)


#: Functions that likelihoods are made with.
FUNCTIONS: dict[str, Any] = {
    "inv_probit": links.inv_probit,
    "exp": tf.exp,
    "sigmoid": tf.sigmoid,
    "softplus": tf.nn.softplus,
}


def _of_tfp(home: Any, names: str) -> dict[str, type]:
    return {name: getattr(home, name) for name in names.split()}


#: Transforms (of which 0 is in the domain of each) and priors; both know what they were made of.
TRANSFORMS = _of_tfp(
    tfp.bijectors,
    "Identity Softplus Exp Shift Scale Chain FillTriangular FillScaleTriL Sigmoid Softsign Square "
    "NormalCDF SoftClip Ascending",
)
PRIORS = _of_tfp(
    tfp.distributions,
    "Normal LogNormal Gamma InverseGamma Exponential Beta Uniform HalfNormal HalfCauchy "
    "HalfStudentT Cauchy Laplace Logistic StudentT TruncatedNormal Chi2 Weibull Pareto Gumbel "
    "LogitNormal LogLogistic InverseGaussian MultivariateNormalDiag MultivariateNormalTriL "
    "Independent Sample TransformedDistribution",
)
