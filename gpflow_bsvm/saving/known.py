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
Source = str | Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """
    How an object is made again.

    :ivar arguments: of the constructor, and where each is read from.
    :ivar state: attributes that are set afterwards; those that hold a parameter or a variable are
        in any case.
    """

    cls: type
    arguments: Mapping[str, Source]
    state: tuple[str, ...] = ()


def same(names: str, **others: Source) -> dict[str, Source]:
    """:return: arguments that are attributes of the same names, and others."""
    return {**{name: name for name in names.split()}, **others}


def fields(cls: Any) -> dict[str, Source]:
    """:return: the arguments of a dataclass or NamedTuple."""
    names = getattr(cls, "_fields", None) or [f.name for f in dataclasses.fields(cls) if f.init]
    return {name: name for name in names}


def _covariance(kernel: linear.WeightKernel) -> Any:
    """:return: what has the shape of the prior covariance; its values are in a parameter."""
    return np.eye(kernel.num_weights) if hasattr(kernel, "root") else np.ones(kernel.variance.shape)


def _table() -> dict[str, Recipe]:
    """:return: recipes by public names, which stay if a class moves."""
    found: dict[str, Recipe] = {}

    def add(home: ModuleType, names: str, arguments: Mapping[str, Source], *state: str) -> None:
        for name in names.split():
            found[f"{home.__name__}.{name}"] = Recipe(getattr(home, name), arguments, state)

    isotropic = "Cosine Exponential Matern12 Matern32 Matern52 SquaredExponential"
    add(kernels, isotropic, same("variance lengthscales active_dims"))
    add(kernels, "RationalQuadratic", same("variance lengthscales alpha active_dims"))
    add(kernels, "Linear Constant White", same("variance active_dims"))
    add(kernels, "Polynomial", same("degree variance offset active_dims"))
    add(kernels, "Periodic", same("base_kernel period"))
    arc = "order variance weight_variances bias_variance active_dims"
    add(kernels, "ArcCosine", same(arc))
    add(kernels, "Coregion", same("output_dim rank active_dims"))
    add(kernels, "ChangePoints", same("kernels locations steepness"))
    add(kernels, "Sum Product SeparateIndependent", same("kernels"))
    add(kernels, "SharedIndependent", same("kernel output_dim"))
    add(linear, "WeightKernel", same("num_inputs bias", prior_covariance=_covariance))

    add(deep, "DeepKernel", same("features kernel input_shape"))

    add(functions, "Zero", same("output_dim"))
    add(functions, "Constant", same("c"))
    add(functions, "Linear", same("A b"))
    add(functions, "Identity", same("input_dim"))
    add(functions, "Additive", {"first_part": "add_1", "second_part": "add_2"})
    add(functions, "Product", {"first_part": "prod_1", "second_part": "prod_2"})
    of_powers: dict[str, Source] = {
        "degree": lambda f: int(np.max(np.sum(f.powers, axis=-1))),
        "input_dim": lambda f: int(f.powers.shape[1]),
        "output_dim": lambda f: int(f.w.shape[0]),
    }
    add(functions, "Polynomial", of_powers)

    add(inducing_variables, "InducingPoints", same("Z"))
    add(deep, "FeaturePoints", same("Z"))
    add(inducing_variables, "Multiscale", same("Z scales"))
    shared = "SharedIndependentInducingVariables FallbackSharedIndependentInducingVariables"
    separate = shared.replace("Shared", "Separate")
    add(inducing_variables, shared, same("inducing_variable"))
    add(inducing_variables, separate, same("inducing_variable_list"))
    weights: dict[str, Source] = {
        "kernel": lambda w: linear.WeightKernel(w.num_inputs, bias=w.shape[0] > w.num_inputs)
    }
    add(linear, "Weights", weights)

    binary, penalized = "link quadrature", "penalty bound normalizer"
    add(likelihoods, "Hinge SquaredHinge", same(f"{binary} {penalized}"))
    add(likelihoods, "NormalizedHinge", same(f"{binary} penalty"))
    add(likelihoods, "Probit PolyaGammaLogistic", same(binary))
    add(likelihoods, "CrammerSinger OneVsRest", same(f"num_classes {penalized}"))
    add(likelihoods, "LevelHinge", same(f"levels {penalized}"))
    add(likelihoods, "OneVsRestLevelHinge", same(f"num_classes levels {penalized}"))
    add(gpflow.likelihoods, "Bernoulli", same("invlink quadrature"))
    add(gpflow.likelihoods, "Softmax", same("num_classes"), "num_monte_carlo_points")
    add(gpflow.likelihoods, "MultiClass", same("num_classes invlink"), "num_gauss_hermite_points")
    add(gpflow.likelihoods, "RobustMax", same("num_classes epsilon"), "_squash")
    add(gpflow.quadrature, "NDiagGHQuadrature", same("dim n_gh"))
    plain: dict[ModuleType, str] = {
        hinge: "ExactHinge AugmentedHinge ExactSquaredHinge",
        crammer_singer: "ExactMaximum AugmentedMaximum Wistuba2018",
        levels: "Levels LocationSpread Smooth",
        inference: "CAVI ClassByClass VEM SVI ML2 ECM NestedLoop Gibbs HMC StaticHMC Adaptive "
        "Constant RobbinsMonro "
        "History",
        likelihoods: "Sites",
    }
    for home, names in plain.items():
        for name in names.split():
            add(home, name, fields(getattr(home, name)))

    prior = "kernel likelihood mean_function num_latent_gps"
    q = "whiten num_data"
    add(models, "BSVM", same(f"{prior} inducing_variable {q}"), "_jitter")
    of_weights = same(
        f"likelihood mean_function num_latent_gps {q}",
        num_features=lambda model: model.inducing_variable.num_inputs,
        bias=lambda model: bool(model.kernel.bias),
    )
    add(models, "LinearBSVM", of_weights, "kernel", "inducing_variable", "_jitter")
    inside = ("whiten", "num_data", "_jitter")
    add(models, "BatchBSVM", same(f"data {prior}"), "inducing_variable", *inside)
    add(models, "DualBSVM", same(f"data {prior} inducing_variable"), "sites", *inside[1:])
    of_rank = same("data kernel likelihood rank mean_function")
    add(models, "FactorVGP", of_rank, "inducing_variable", *inside[1:])
    return found


#: By public name.
KNOWN = _table()

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
