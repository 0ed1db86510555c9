"""What a file may hold: a closed list of classes, and how each is made again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import functions, inducing_variables, kernels
from gpflow.likelihoods import utils as links
from sklearn.preprocessing import StandardScaler

from .. import deep, inference, likelihoods, models
from ..estimators import BSVMClassifier
from ..likelihoods import crammer_singer, hinge, levels
from ..models import linear

#: An attribute by its name, or what is made of the object.
Argument = str | Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """
    How an object is made again.

    :ivar arguments: of the constructor, and where each is read from.
    :ivar state: attributes that are set afterwards; those that hold a parameter or a variable are
        in any case.
    """

    cls: type
    arguments: Mapping[str, Argument]
    state: tuple[str, ...] = ()


def same(names: str, **others: Argument) -> dict[str, Argument]:
    """:return: arguments that are attributes of the same names, and others."""
    return {**{name: name for name in names.split()}, **others}


def fields(cls: Any) -> dict[str, Argument]:
    """:return: the arguments of a dataclass or NamedTuple."""
    names = getattr(cls, "_fields", None) or [f.name for f in dataclasses.fields(cls) if f.init]
    return {name: name for name in names}


def _covariance(kernel: linear.WeightKernel) -> Any:
    """:return: what has the shape of the prior covariance; its values are in a parameter."""
    return np.eye(kernel.num_weights) if hasattr(kernel, "root") else np.ones(kernel.variance.shape)


def _of(
    home: ModuleType, names: str, arguments: Mapping[str, Argument], *state: str
) -> dict[str, Recipe]:
    """:return: recipes by public names, which stay if a class moves."""
    cls = {name: getattr(home, name) for name in names.split()}
    return {f"{home.__name__}.{name}": Recipe(c, arguments, state) for name, c in cls.items()}


def _kernels() -> dict[str, Recipe]:
    isotropic = "Cosine Exponential Matern12 Matern32 Matern52 SquaredExponential"
    arc = "order variance weight_variances bias_variance active_dims"
    return {
        **_of(kernels, isotropic, same("variance lengthscales active_dims")),
        **_of(kernels, "RationalQuadratic", same("variance lengthscales alpha active_dims")),
        **_of(kernels, "Linear Constant White", same("variance active_dims")),
        **_of(kernels, "Polynomial", same("degree variance offset active_dims")),
        **_of(kernels, "Periodic", same("base_kernel period")),
        **_of(kernels, "ArcCosine", same(arc)),
        **_of(kernels, "Coregion", same("output_dim rank active_dims")),
        **_of(kernels, "ChangePoints", same("kernels locations steepness")),
        **_of(kernels, "Sum Product SeparateIndependent", same("kernels")),
        **_of(kernels, "SharedIndependent", same("kernel output_dim")),
        **_of(linear, "WeightKernel", same("num_inputs bias", prior_covariance=_covariance)),
        **_of(deep, "DeepKernel", same("features kernel input_shape")),
    }


def _mean_functions() -> dict[str, Recipe]:
    of_powers: dict[str, Argument] = {
        "degree": lambda f: int(np.max(np.sum(f.powers, axis=-1))),
        "input_dim": lambda f: int(f.powers.shape[1]),
        "output_dim": lambda f: int(f.w.shape[0]),
    }
    return {
        **_of(functions, "Zero", same("output_dim")),
        **_of(functions, "Constant", same("c")),
        **_of(functions, "Linear", same("A b")),
        **_of(functions, "Identity", same("input_dim")),
        **_of(functions, "Additive", {"first_part": "add_1", "second_part": "add_2"}),
        **_of(functions, "Product", {"first_part": "prod_1", "second_part": "prod_2"}),
        **_of(functions, "Polynomial", of_powers),
    }


def _inducing_variables() -> dict[str, Recipe]:
    shared = "SharedIndependentInducingVariables FallbackSharedIndependentInducingVariables"
    separate = shared.replace("Shared", "Separate")
    weights: dict[str, Argument] = {
        "kernel": lambda w: linear.WeightKernel(w.num_inputs, bias=w.shape[0] > w.num_inputs)
    }
    return {
        **_of(inducing_variables, "InducingPoints", same("Z")),
        **_of(deep, "FeaturePoints", same("Z")),
        **_of(inducing_variables, "Multiscale", same("Z scales")),
        **_of(inducing_variables, shared, same("inducing_variable")),
        **_of(inducing_variables, separate, same("inducing_variable_list")),
        **_of(linear, "Weights", weights),
    }


def _likelihoods() -> dict[str, Recipe]:
    theirs, binary, penalized = gpflow.likelihoods, "link quadrature", "penalty bound normalizer"
    classes = "num_classes invlink"
    return {
        **_of(likelihoods, "Hinge SquaredHinge", same(f"{binary} {penalized}")),
        **_of(likelihoods, "NormalizedHinge", same(f"{binary} penalty")),
        **_of(likelihoods, "Probit PolyaGammaLogistic", same(binary)),
        **_of(likelihoods, "CrammerSinger OneVsRest", same(f"num_classes {penalized}")),
        **_of(likelihoods, "LevelHinge", same(f"levels link {penalized}")),
        **_of(likelihoods, "OneVsRestLevelHinge", same(f"num_classes levels link {penalized}")),
        **_of(theirs, "Bernoulli", same("invlink quadrature")),
        **_of(theirs, "Softmax", same("num_classes"), "num_monte_carlo_points"),
        **_of(theirs, "MultiClass", same(classes), "num_gauss_hermite_points"),
        **_of(theirs, "RobustMax", same("num_classes epsilon"), "_squash"),
        **_of(gpflow.quadrature, "NDiagGHQuadrature", same("dim n_gh")),
    }


def _plain() -> dict[str, Recipe]:
    """Dataclasses and NamedTuples, which are their fields."""
    algorithms = "CAVI ClassByClass VEM SVI ML2 ECM NestedLoop Gibbs HMC StaticHMC"
    homes: dict[ModuleType, str] = {
        hinge: "ExactHinge AugmentedHinge ExactSquaredHinge",
        crammer_singer: "ExactMaximum AugmentedMaximum Wistuba2018",
        levels: "Levels LocationSpread Smooth",
        inference: f"{algorithms} Adaptive Constant RobbinsMonro History",
        likelihoods: "Sites",
    }
    found: dict[str, Recipe] = {}
    for home, names in homes.items():
        for name in names.split():
            found |= _of(home, name, fields(getattr(home, name)))
    return found


def _models() -> dict[str, Recipe]:
    prior = "kernel likelihood mean_function num_latent_gps"
    q, inside = "whiten num_data", ("whiten", "num_data", "_jitter")
    of_weights = same(
        f"likelihood mean_function num_latent_gps {q}",
        num_features=lambda model: model.inducing_variable.num_inputs,
        bias=lambda model: bool(model.kernel.bias),
    )
    of_rank = same("data kernel likelihood rank mean_function")
    return {
        **_of(models, "BSVM", same(f"{prior} inducing_variable {q}"), "_jitter"),
        **_of(models, "LinearBSVM", of_weights, "kernel", "inducing_variable", "_jitter"),
        **_of(models, "BatchBSVM", same(f"data {prior}"), "inducing_variable", *inside),
        **_of(models, "DualBSVM", same(f"data {prior} inducing_variable"), "sites", *inside[1:]),
        **_of(models, "FactorVGP", of_rank, "inducing_variable", *inside[1:]),
    }


#: By public name.
KNOWN = (
    _kernels() | _mean_functions() | _inducing_variables() | _likelihoods() | _plain() | _models()
)

#: Estimators: parameters by `get_params`, all that a fit has learned by names that end in "_".
ESTIMATORS: dict[str, Any] = {
    "gpflow_bsvm.BSVMClassifier": BSVMClassifier,
    "sklearn.preprocessing.StandardScaler": StandardScaler,
}

#: Functions that likelihoods are made with.
FUNCTIONS: dict[str, Any] = {
    "inv_probit": links.inv_probit,
    "exp": tf.exp,
    "sigmoid": tf.sigmoid,
    "softplus": tf.nn.softplus,
}


def _of_tfp(home: ModuleType, names: str) -> dict[str, type]:
    return {name: getattr(home, name) for name in names.split()}


#: Transforms (of which 0 is in the domain of each) and priors; both know what they were made of.
TRANSFORMS = _of_tfp(
    tfp.bijectors,
    "Identity Softplus Exp Shift Scale Chain FillTriangular FillScaleTriL Sigmoid Softsign Square "
    "NormalCDF SoftClip",
)
PRIORS = _of_tfp(
    tfp.distributions,
    "Normal LogNormal Gamma InverseGamma Exponential Beta Uniform HalfNormal HalfCauchy "
    "HalfStudentT Cauchy Laplace Logistic StudentT TruncatedNormal Chi2 Weibull Pareto Gumbel "
    "LogitNormal LogLogistic InverseGaussian MultivariateNormalDiag MultivariateNormalTriL "
    "Independent Sample TransformedDistribution",
)
