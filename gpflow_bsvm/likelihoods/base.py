"""Gaussian sites of any GPflow likelihood, and the base class of the package's classifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.base import MeanAndVariance, TensorType
from gpflow.likelihoods import Likelihood
from gpflow.utilities import positive, to_default_float

from .hooks import Hooks, Sites, has_hook

#: Floor of variances: the square root has no gradient at 0. The floor also bounds every site
#: precision by about penalty / sqrt(floor), small enough for Cholesky factors.
VARIANCE_FLOOR = 1e-14
#: A precision below -_ROUNDING / variance is negative by more than rounding.
_ROUNDING = 1e-6


@check_shapes(
    "X: [broadcast batch..., D]",
    "Fmu: [batch..., L]",
    "Fvar: [batch..., L]",
    "Y: [broadcast batch..., P]",
    "return[0]: [batch..., L]",
    "return[1]: [batch..., L]",
)
def sites(
    likelihood: Likelihood, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
) -> Sites:
    r"""
    The Gaussian sites of a likelihood at q(f) = N(Fmu, Fvar), in the natural parameters that a
    natural-gradient step on E_q log p(Y | f) adds to the prior:

        w = -2 dV/dFvar,    r = dV/dFmu + w Fmu,    V = E_q log p(Y | f).

    Sites are in closed form if the likelihood has a method `sites`. Otherwise its
    `variational_expectations` are differentiated automatically (Bonnet's and Price's theorems). If
    the likelihood is not log-concave, a precision can be negative (GPflow's `Bernoulli` in its
    tails). It is set to 0 then, or if dV/dFvar is not finite. The posterior precision stays
    positive definite, and the stationary mean does not change.

    :param likelihood: any GPflow likelihood.
    """
    if has_hook(likelihood, "sites"):
        w, r = likelihood.sites(X, Fmu, Fvar, Y)
        return Sites(w, r)
    return sites_by_autodiff(likelihood, X, Fmu, Fvar, Y)


@check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return[all]: [batch..., L]")
def sites_by_autodiff(
    likelihood: Likelihood, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
) -> Sites:
    """`sites` by automatic differentiation, whether or not the likelihood has a closed form."""
    return differentiate(partial(likelihood.variational_expectations, X, Y=Y), Fmu, Fvar)


@check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return: [batch..., L]")
def clipped_sites(
    likelihood: Likelihood, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
) -> tf.Tensor:
    """
    :param likelihood: a likelihood without its own `sites`.
    :return: True where `sites` replaced a precision by 0, because it was NaN or negative by more
        than rounding.
    """
    _, d_var = slopes(partial(likelihood.variational_expectations, X, Y=Y), Fmu, Fvar)
    return (2 * d_var * Fvar > _ROUNDING) | ~tf.math.is_finite(d_var)


@check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return[all]: [batch..., L]")
def differentiate(expectation: Callable[..., Any], Fmu: TensorType, Fvar: TensorType) -> Sites:
    """:return: the sites for an expectation, given as a function of Fmu and Fvar."""
    d_mean, d_var = slopes(expectation, Fmu, Fvar)
    # If the second derivative fails, a step along the first still ascends.
    precision = tf.where(tf.math.is_finite(d_var), tf.maximum(-2 * d_var, 0), tf.zeros_like(d_var))
    return Sites(precision, d_mean + precision * Fmu)


def slopes(expectation: Callable[..., Any], Fmu: TensorType, Fvar: TensorType) -> Any:
    """:return: the derivatives of an expectation with respect to Fmu and Fvar."""
    Fmu = tf.convert_to_tensor(Fmu)
    Fvar = tf.convert_to_tensor(Fvar)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch((Fmu, Fvar))
        expectations = expectation(Fmu, Fvar)
    return tape.gradient(
        expectations, (Fmu, Fvar), unconnected_gradients=tf.UnconnectedGradients.ZERO
    )


def probabilities(
    likelihood: Likelihood, X: TensorType, F: TensorType, Fvar: TensorType | None = None
) -> tf.Tensor:
    """
    :param F: f, or its mean if Fvar is given.
    :return: class probabilities if the likelihood defines them, else the mean of y.
    """
    if hasattr(likelihood, "probabilities"):
        return likelihood.probabilities(F, tf.zeros_like(F) if Fvar is None else Fvar)
    if Fvar is None:
        return likelihood.conditional_mean(X, F)
    return likelihood.predict_mean_and_var(X, F, Fvar)[0]


class Classification(Hooks):
    """
    Base of the package's classification likelihoods. They predict probabilities p by a link. The
    link's parameters affect only predictions and are never trained with the model.
    `predict_mean_and_var` returns p and p - p^2: mean and variance of y in {0, 1}, or of each
    column of one-hot labels.

    :cvar neutral_link: the link's parameters before `gpflow_bsvm.prediction.calibrate` sets them.
    """

    neutral_link: ClassVar[Mapping[str, float]] = {"scale": 1.0}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Arguments are as in the other base classes."""
        super().__init__(*args, **kwargs)
        for name, value in self.neutral_link.items():
            transform = positive() if name == "scale" else None
            setattr(self, name, Parameter(value, transform=transform, trainable=False))

    @property
    def link_parameters(self) -> dict[str, Parameter]:
        """:return: the parameters that calibration may set, by name."""
        return {name: getattr(self, name) for name in self.neutral_link}

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return: [batch..., C]")
    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: p at q(f) = N(Fmu, Fvar) by the current link: P(y = 1), or all P(y = c)."""
        raise NotImplementedError

    @check_shapes("F: [batch..., L]", "return: [batch..., C]")
    def invlink(self, F: TensorType) -> tf.Tensor:
        """:return: p given f by the current link, as in GPflow's `Bernoulli.invlink`."""
        F = to_default_float(F)
        return self.probabilities(F, tf.zeros_like(F))

    @check_shapes("p: [batch..., C]", "return[all]: [batch..., P]")
    def label_moments(self, p: tf.Tensor) -> MeanAndVariance:
        """:return: mean and variance of y."""
        return p, p - tf.square(p)

    @inherit_check_shapes
    def _conditional_mean(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return self.label_moments(self.invlink(F))[0]

    @inherit_check_shapes
    def _conditional_variance(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return self.label_moments(self.invlink(F))[1]

    @inherit_check_shapes
    def _predict_mean_and_var(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        return self.label_moments(self.probabilities(Fmu, Fvar))
