"""What a file may hold: a closed list of classes, and how each is made again."""

from __future__ import annotations

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
from ..likelihoods import levels
from ..models import linear
from ..papers import gold2003, seeger2000, wenzel2017, wistuba2018
from .recipes import Argument, Recipe, fields, is_a, is_positive, recipes, same


def _covariance(kernel: linear.WeightKernel) -> Any:
    """:return: what has the shape of the prior covariance; its values are in a parameter."""
    return np.eye(kernel.num_weights) if hasattr(kernel, "root") else np.ones(kernel.variance.shape)


def _kernels() -> dict[str, Recipe]:
    isotropic = "Cosine Exponential Matern12 Matern32 Matern52 SquaredExponential"
    arc = "order variance weight_variances bias_variance active_dims"
    patches = "base_kernel image_shape patch_shape weights colour_channels"
    return {
        **recipes(kernels, isotropic, same("variance lengthscales active_dims")),
        **recipes(kernels, "RationalQuadratic", same("variance lengthscales alpha active_dims")),
        **recipes(kernels, "Linear Constant White", same("variance active_dims")),
        **recipes(kernels, "Polynomial", same("degree variance offset active_dims")),
        **recipes(kernels, "Periodic", same("base_kernel period")),
        **recipes(kernels, "ArcCosine", same(arc)),
        **recipes(kernels, "Coregion", same("output_dim rank active_dims")),
        **recipes(kernels, "ChangePoints", same("kernels locations steepness")),
        **recipes(kernels, "Sum Product SeparateIndependent", same("kernels")),
        **recipes(kernels, "Convolutional", same(patches)),
        **recipes(kernels, "SharedIndependent", same("kernel output_dim")),
        **recipes(linear, "WeightKernel", same("num_inputs bias", prior_covariance=_covariance)),
        **recipes(deep, "DeepKernel", same("features kernel input_shape")),
    }


def _mean_functions() -> dict[str, Recipe]:
    of_powers: dict[str, Argument] = {
        "degree": lambda f: int(np.max(np.sum(f.powers, axis=-1))),
        "input_dim": lambda f: int(f.powers.shape[1]),
        "output_dim": lambda f: int(f.w.shape[0]),
    }
    return {
        **recipes(functions, "Zero", same("output_dim")),
        **recipes(functions, "Constant", same("c")),
        **recipes(functions, "Linear", same("A b")),
        **recipes(functions, "Identity", same("input_dim")),
        **recipes(functions, "Additive", {"first_part": "add_1", "second_part": "add_2"}),
        **recipes(functions, "Product", {"first_part": "prod_1", "second_part": "prod_2"}),
        **recipes(functions, "Polynomial", of_powers),
        **recipes(functions, "SwitchedMeanFunction", {"meanfunction_list": "functions"}),
    }


def _inducing_variables() -> dict[str, Recipe]:
    shared = "SharedIndependentInducingVariables FallbackSharedIndependentInducingVariables"
    separate = shared.replace("Shared", "Separate")
    weights: dict[str, Argument] = {
        "kernel": lambda w: linear.WeightKernel(w.num_inputs, bias=w.shape[0] > w.num_inputs)
    }
    return {
        **recipes(inducing_variables, "InducingPoints InducingPatches", same("Z")),
        **recipes(deep, "FeaturePoints", same("Z")),
        **recipes(inducing_variables, "Multiscale", same("Z scales")),
        **recipes(inducing_variables, shared, same("inducing_variable")),
        **recipes(inducing_variables, separate, same("inducing_variable_list")),
        **recipes(linear, "Weights", weights),
    }


def _likelihoods() -> dict[str, Recipe]:
    theirs, binary, penalized = gpflow.likelihoods, "link quadrature", "penalty bound normalizer"
    classes = "num_classes invlink"
    return {
        **recipes(likelihoods, "Hinge SquaredHinge", same(f"{binary} {penalized}")),
        **recipes(seeger2000, "NormalizedHinge", same(f"{binary} penalty")),
        **recipes(likelihoods, "Probit PolyaGammaLogistic", same(binary)),
        **recipes(likelihoods, "CrammerSinger OneVsRest", same(f"num_classes {penalized}")),
        **recipes(wistuba2018, "CrammerSinger", same(f"num_classes {penalized}")),
        **recipes(likelihoods, "LevelHinge", same(f"levels link {penalized}")),
        **recipes(likelihoods, "OneVsRestLevelHinge", same(f"num_classes levels link {penalized}")),
        **recipes(theirs, "Bernoulli Exponential", same("invlink quadrature")),
        **recipes(theirs, "Gaussian", same("variance scale variance_lower_bound quadrature")),
        **recipes(theirs, "StudentT", same("scale df scale_lower_bound quadrature")),
        **recipes(theirs, "Poisson", same("invlink binsize quadrature")),
        **recipes(theirs, "Gamma", same("invlink shape shape_lower_bound quadrature")),
        **recipes(theirs, "Beta", same("invlink scale scale_lower_bound quadrature")),
        **recipes(theirs, "Ordinal", same("bin_edges quadrature")),
        **recipes(theirs, "SwitchedLikelihood", same("quadrature", likelihood_list="likelihoods")),
        **recipes(theirs, "Softmax", same("num_classes"), num_monte_carlo_points=is_positive),
        **recipes(theirs, "MultiClass", same(classes), num_gauss_hermite_points=is_positive),
        **recipes(theirs, "RobustMax", same("num_classes epsilon"), _squash=is_positive),
        **recipes(gpflow.quadrature, "NDiagGHQuadrature", same("dim n_gh")),
    }


def _plain() -> dict[str, Recipe]:
    """Dataclasses and NamedTuples, which are their fields."""
    algorithms = "CAVI VEM SVI ML2 ECM Gibbs HMC"
    homes: dict[ModuleType, str] = {
        levels: "Levels LocationSpread",
        inference: f"{algorithms} Adaptive Constant RobbinsMonro History",
        likelihoods: "Sites",
        gold2003: "StaticHMC",
        seeger2000: "NestedLoop",
        wistuba2018: "ClassByClass",
    }
    found: dict[str, Recipe] = {}
    for home, names in homes.items():
        for name in names.split():
            found |= recipes(home, name, fields(getattr(home, name)))
    return found


def _is_diagonal(model: gpflow.models.SVGP) -> bool:
    return len(model.q_sqrt.shape) == 2


def _models() -> dict[str, Recipe]:
    prior = "kernel likelihood mean_function num_latent_gps"
    q, jitter = "whiten num_data", {"_jitter": is_positive}
    points = {"inducing_variable": is_a(inducing_variables.InducingVariables)}
    number = {"num_data": is_positive, **jitter}
    of_weights = same(
        f"likelihood mean_function num_latent_gps {q}",
        num_features=lambda model: model.inducing_variable.num_inputs,
        bias=lambda model: bool(model.kernel.bias),
    )
    of_points = same(f"data {prior} inducing_variable")
    of_rank = same("data kernel likelihood rank mean_function")
    kernel, sites = {"kernel": is_a(linear.WeightKernel)}, {"sites": is_a(likelihoods.Sites)}
    whiten = {"whiten": is_a(bool)}
    return {
        **recipes(
            gpflow.models, "SVGP", same(f"{prior} inducing_variable {q}", q_diag=_is_diagonal)
        ),
        **recipes(models, "BSVM", same(f"{prior} inducing_variable {q}"), **jitter),
        **recipes(models, "LinearBSVM", of_weights, **kernel, **points, **jitter),
        **recipes(models, "BatchBSVM", same(f"data {prior}"), **points, **whiten, **number),
        **recipes(wenzel2017, "DualBSVM", of_points, **sites, **number),
        **recipes(seeger2000, "FactorVGP", of_rank, **points, **number),
    }


def _estimators() -> dict[str, Recipe]:
    """Parameters by `get_params`, and what a fit has learned."""
    number, array = is_a(int, float, np.number), is_a(np.ndarray)
    columns = {"n_features_in_": number, "feature_names_in_": array}
    of_classifier = {
        "classes_": array,
        "model_": is_a(models.BSVM),
        "loss_": is_a(str),
        "penalty_": number,
        "scaler_": is_a(type(None), StandardScaler),
        "history_": is_a(inference.History),
    }
    of_scaler = dict.fromkeys(("mean_", "var_", "scale_"), is_a(type(None), np.ndarray))
    of_scaler["n_samples_seen_"] = is_a(int, np.number, np.ndarray)
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
