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
#: Of a value that a file gives: whether it may be what it is said to be.
Fits = Callable[[Any], bool]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """
    How an object is made again.

    :ivar arguments: of the constructor, and where each is read from.
    :ivar state: attributes that are set afterwards, and what tells whether a value may be one.
        Those that hold a parameter or a variable are set in any case.
    """

    cls: type
    arguments: Mapping[str, Argument]
    state: Mapping[str, Fits] = dataclasses.field(default_factory=dict)


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


def _is(*types: Any) -> Fits:
    return lambda value: isinstance(value, types)


def _is_positive(value: Any) -> bool:
    """:return: whether it is a number above 0, or None."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return value is None or bool(number and 0 < value < np.inf)


def _of(
    home: ModuleType, names: str, arguments: Mapping[str, Argument], **state: Fits
) -> dict[str, Recipe]:
    """:return: recipes by public names, which stay if a class moves."""
    cls = {name: getattr(home, name) for name in names.split()}
    return {f"{home.__name__}.{name}": Recipe(c, arguments, state) for name, c in cls.items()}


def _kernels() -> dict[str, Recipe]:
    isotropic = "Cosine Exponential Matern12 Matern32 Matern52 SquaredExponential"
    arc = "order variance weight_variances bias_variance active_dims"
    patches = "base_kernel image_shape patch_shape weights colour_channels"
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
        **_of(kernels, "Convolutional", same(patches)),
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
        **_of(functions, "SwitchedMeanFunction", {"meanfunction_list": "functions"}),
    }


def _inducing_variables() -> dict[str, Recipe]:
    shared = "SharedIndependentInducingVariables FallbackSharedIndependentInducingVariables"
    separate = shared.replace("Shared", "Separate")
    weights: dict[str, Argument] = {
        "kernel": lambda w: linear.WeightKernel(w.num_inputs, bias=w.shape[0] > w.num_inputs)
    }
    return {
        **_of(inducing_variables, "InducingPoints InducingPatches", same("Z")),
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
        **_of(theirs, "Bernoulli Exponential", same("invlink quadrature")),
        **_of(theirs, "Gaussian", same("variance scale variance_lower_bound quadrature")),
        **_of(theirs, "StudentT", same("scale df scale_lower_bound quadrature")),
        **_of(theirs, "Poisson", same("invlink binsize quadrature")),
        **_of(theirs, "Gamma", same("invlink shape shape_lower_bound quadrature")),
        **_of(theirs, "Beta", same("invlink scale scale_lower_bound quadrature")),
        **_of(theirs, "Ordinal", same("bin_edges quadrature")),
        **_of(theirs, "SwitchedLikelihood", same("quadrature", likelihood_list="likelihoods")),
        **_of(theirs, "Softmax", same("num_classes"), num_monte_carlo_points=_is_positive),
        **_of(theirs, "MultiClass", same(classes), num_gauss_hermite_points=_is_positive),
        **_of(theirs, "RobustMax", same("num_classes epsilon"), _squash=_is_positive),
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


def _is_diagonal(model: gpflow.models.SVGP) -> bool:
    return len(model.q_sqrt.shape) == 2


def _models() -> dict[str, Recipe]:
    prior = "kernel likelihood mean_function num_latent_gps"
    q, jitter = "whiten num_data", {"_jitter": _is_positive}
    points = {"inducing_variable": _is(inducing_variables.InducingVariables)}
    number = {"num_data": _is_positive, **jitter}
    of_weights = same(
        f"likelihood mean_function num_latent_gps {q}",
        num_features=lambda model: model.inducing_variable.num_inputs,
        bias=lambda model: bool(model.kernel.bias),
    )
    of_rank = same("data kernel likelihood rank mean_function")
    kernel, sites = {"kernel": _is(linear.WeightKernel)}, {"sites": _is(likelihoods.Sites)}
    whiten = {"whiten": _is(bool)}
    return {
        **_of(gpflow.models, "SVGP", same(f"{prior} inducing_variable {q}", q_diag=_is_diagonal)),
        **_of(models, "BSVM", same(f"{prior} inducing_variable {q}"), **jitter),
        **_of(models, "LinearBSVM", of_weights, **kernel, **points, **jitter),
        **_of(models, "BatchBSVM", same(f"data {prior}"), **points, **whiten, **number),
        **_of(models, "DualBSVM", same(f"data {prior} inducing_variable"), **sites, **number),
        **_of(models, "FactorVGP", of_rank, **points, **number),
    }


def _estimators() -> dict[str, Recipe]:
    """Parameters by `get_params`, and what a fit has learned."""
    number, array = _is(int, float, np.number), _is(np.ndarray)
    columns = {"n_features_in_": number, "feature_names_in_": array}
    of_classifier = {
        "classes_": array,
        "model_": _is(models.BSVM),
        "loss_": _is(str),
        "penalty_": number,
        "scaler_": _is(type(None), StandardScaler),
        "history_": _is(inference.History),
    }
    of_scaler = dict.fromkeys(("mean_", "var_", "scale_"), _is(type(None), np.ndarray))
    of_scaler["n_samples_seen_"] = _is(int, np.number, np.ndarray)
    found: dict[str, Recipe] = {}
    for home, cls, state in (
        ("gpflow_bsvm", BSVMClassifier, of_classifier),
        ("sklearn.preprocessing", StandardScaler, of_scaler),
    ):
        names = " ".join(cls._get_param_names())
        found[f"{home}.{cls.__name__}"] = Recipe(cls, same(names), state | columns)
    return found


#: By public name.
KNOWN = {
    **_kernels(),
    **_mean_functions(),
    **_inducing_variables(),
    **_likelihoods(),
    **_plain(),
    **_models(),
    **_estimators(),
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
