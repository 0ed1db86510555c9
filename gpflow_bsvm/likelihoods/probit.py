"""Gaussian-process classification with an unfloored probit, for comparison."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from .binary import BinaryLikelihood, normal_log_cdf, signs


class Probit(BinaryLikelihood):
    r"""
    p(y | f) = Phi(y f): what `gpflow.likelihoods.Bernoulli` computes, without its floor of 1e-3
    on the probability. The floor makes the log-likelihood non-concave, so that natural gradients
    can leave the cone of positive definite precisions; without it they cannot.

    Expectations by GPflow's Gauss-Hermite quadrature, sites by automatic differentiation: this
    likelihood shows what the package's engine does for a likelihood that it knows nothing about.
    """

    @inherit_check_shapes
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return normal_log_cdf(signs(Y) * F)
