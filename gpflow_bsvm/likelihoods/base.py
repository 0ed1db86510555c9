"""What one label says about f: a Gaussian site, for any GPflow likelihood."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.likelihoods import Likelihood


class Sites(NamedTuple):
    """Gaussian sites of f."""

    w: tf.Tensor  #: [..., L], precisions
    r: tf.Tensor  #: [..., L], precision-means


#: Variances below are taken as this: the square root has no gradient at 0. It also bounds every
#: site precision (by about penalty / sqrt(floor)), far below where a Cholesky factor would fail.
VARIANCE_FLOOR = 1e-14


@runtime_checkable
class HasSites(Protocol):
    """A likelihood that knows its sites in closed form."""

    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """:return: precision w and precision-mean r, each `[batch..., L]`."""


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

    Closed form where the likelihood has a method `sites`, else by automatic differentiation of
    its `variational_expectations` (Bonnet's and Price's theorems). Where the likelihood is not
    log-concave a precision can come out negative (GPflow's `Bernoulli` in its tails): it is set
    to 0, which leaves the stationary mean as it is and keeps the posterior precision positive
    definite.

    :param likelihood: any GPflow likelihood.
    :return: precisions `w >= 0` and precision-means `r`.
    """
    if isinstance(likelihood, HasSites):
        precision, precision_mean = likelihood.sites(X, Fmu, Fvar, Y)
        return Sites(precision, precision_mean)
    return sites_by_autodiff(likelihood, X, Fmu, Fvar, Y)


def sites_by_autodiff(
    likelihood: Likelihood, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
) -> Sites:
    """`sites` by automatic differentiation, whether or not the likelihood has a closed form."""
    Fmu, Fvar = tf.convert_to_tensor(Fmu), tf.convert_to_tensor(Fvar)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch((Fmu, Fvar))
        expectations = likelihood.variational_expectations(X, Fmu, Fvar, Y)
    d_mean, d_var = tape.gradient(
        expectations, (Fmu, Fvar), unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    precision = tf.maximum(-2 * d_var, 0)
    return Sites(precision, d_mean + precision * Fmu)
