r"""The local variables lambda of the augmented hinge (Polson & Scott 2011; Wenzel et al. 2017).

With a = penalty / 2 and b = 1 - y f the hinge is a scale mixture of Gaussians,

    exp(-2a max(0, b)) = int_0^inf p(y, lambda | f) dlambda,
    p(y, lambda | f) = a (2 pi lambda)^(-1/2) exp(-a b - (a^2 lambda + b^2 / lambda) / 2),

and the optimal q(lambda) is GIG(1/2, a^2, alpha), alpha = E b^2, whose inverse is an inverse
Gaussian. Inference needs none of this, since the bound is closed in alpha; it is here to be
looked at: points with a small alpha lie on the margin, they are the soft support vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray, TensorType
from gpflow.utilities import to_default_float

from ..data.checks import check_data
from ..data.opening import holds_arrays
from ..engine.contracts import Model
from ..likelihoods.hooks import Hook, check_hooks
from .marginals import map_labelled


def local_distribution(alpha: TensorType, penalty: TensorType) -> tfp.distributions.Distribution:
    """
    q(lambda) = GIG(1/2, a^2, alpha), as the distribution of 1 / s with s inverse Gaussian of mean
    a / sqrt(alpha) and shape a^2.

    :param alpha: positive, any shape: E (1 - y f)^2; or (1 - y f)^2 for the conditional
        p(lambda | f, y).
    :param penalty: of the hinge, positive.
    :return: a TFP distribution of the batch shape of `alpha` (`log_prob`, `sample`).
    """
    alpha = to_default_float(alpha)
    a = to_default_float(penalty) / 2
    inverse = tfp.distributions.InverseGaussian(
        loc=a / tf.sqrt(alpha), concentration=tf.ones_like(alpha) * tf.square(a)
    )
    return tfp.distributions.TransformedDistribution(inverse, tfp.bijectors.Reciprocal())


def local_moments(alpha: TensorType, penalty: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
    """
    :return: E lambda = sqrt(alpha) / a + 1 / a^2 and E 1/lambda = a / sqrt(alpha) under the
        `local_distribution` of these arguments.
    """
    alpha = to_default_float(alpha)
    a = to_default_float(penalty) / 2
    return tf.sqrt(alpha) / a + 1 / tf.square(a), a / tf.sqrt(alpha)


def alpha(model: Model, data: Any) -> AnyNDArray:
    """
    alpha_n = (1 - y_n mu_n)^2 + v_n at the model's present q (Wenzel et al. 2017, section 4.1).

    :param model: with a likelihood that has local variables, such as `Hinge`.
    :param data: X [N, D] and Y [N, L], or any others that a fit takes.
    :return: [N, L].
    :raise ValueError: for bad data, or a likelihood without local variables.
    """
    check_hooks(model.likelihood, [Hook.ALPHA])
    if holds_arrays(data):
        data = check_data(model.likelihood, *data)
    likelihood: Any = model.likelihood
    look = lambda X, Fmu, Fvar, Y: likelihood.alpha(Fmu, Fvar, Y)  # noqa: E731
    return np.asarray(map_labelled(model, data, look))


def soft_support_vectors(model: Model, data: Any, num: int | None = None) -> AnyNDArray:
    """
    The rows nearest to the margin y f = 1, by their alpha.

    :param num: how many; None: all with alpha below 1, which lie nearer to the margin than a
        point of f = 0 that is known exactly.
    :return: row numbers, smallest alpha first (over the latent functions, the smallest counts).
    """
    smallest = alpha(model, data).min(axis=-1)
    order = np.argsort(smallest, kind="stable")
    return order[: int((smallest < 1).sum()) if num is None else num]
