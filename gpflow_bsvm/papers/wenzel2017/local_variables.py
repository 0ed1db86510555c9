"""The local variables of the augmentation in the terms of Wenzel et al. (2017)."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes
from gpflow.base import AnyNDArray, TensorType
from gpflow.utilities import to_default_float

from ...data.passes import map_over, sum_over
from ...engine.contracts import Model
from ...engine.natural import Gaussian, compiled_gaussian, compiled_solve
from ...engine.open import open_all, open_inputs
from ...engine.projected_data import ProjectedData
from ...engine.projection import Projected
from ...engine.shared_graph import Compiled
from ...engine.statistics import compiled_marginals, compiled_sum_sites, marginals_of_f
from ...likelihoods.hooks import check_hooks
from ...prediction.estimators import takes_estimators


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


@check_shapes(
    "alpha: [batch..., K]",
    "Fmu: [batch..., L]",
    "Fvar: [batch..., L]",
    "return: [batch...]",
)
def bound_at(
    likelihood: Any, alpha: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
) -> tf.Tensor:
    """
    The augmented bound at local variables of any parameter (Wenzel et al. 2017, eq. 8; Wistuba &
    Rawat 2018, eq. 12 with the sign mended), q(lambda) = GIG(1/2, a^2, alpha):

        E_q [log p(y, lambda | f) - log q(lambda)]
            = -a E b - (a / 2) (sqrt(alpha) + E b^2 / sqrt(alpha)),

    summed over the losses of a row. It is largest at alpha = E b^2, where it is what
    bound="augmented" trains: -a E b - a sqrt(E b^2).

    :param likelihood: with local variables (`moments`).
    :param alpha: positive.
    """
    mean, square, cost = likelihood.moments(Fmu, Fvar, Y)
    root = tf.sqrt(tf.cast(alpha, mean.dtype))
    terms = -cost / 2 * (mean + (root + square / root) / 2)
    kappas = likelihood.log_kappa() + tf.zeros_like(likelihood.losses(Y, Fmu))
    return tf.reduce_sum(kappas, axis=-1) + tf.reduce_sum(terms, axis=-1)


@Compiled
def compiled_alpha(likelihood: Any, q: Gaussian, rows: Projected) -> tf.Tensor:
    """:return: `gpflow_bsvm.prediction.alpha` of some rows."""
    f = marginals_of_f(q, rows.features)
    return likelihood.moments(f.mean, f.variance, rows.batch.Y).square


@Compiled
def _bound_at(likelihood: Any, q: Gaussian, rows: Projected, alpha: tf.Tensor) -> tf.Tensor:
    f = marginals_of_f(q, rows.features)
    bounds = bound_at(likelihood, alpha, f.mean, f.variance, rows.batch.Y)
    return tf.reduce_sum(rows.batch.weight[:, 0] * bounds)


@takes_estimators
def augmented_elbo(
    model: Model, data: Any = None, alpha: Any = None, *, sample_weight: Any = None
) -> float:
    r"""
    The papers' objective, of q and of local variables q(lambda_n) = GIG(1/2, a^2, alpha_n) with any
    alpha (Wenzel et al. 2017, eq. 8; Wistuba & Rawat 2018, eq. 12), with its constants:

        sum_n [-a E b_n - (a / 2) (sqrt(alpha_n) + E b_n^2 / sqrt(alpha_n))] - KL(q || p).

    It is largest at alpha_n = E b_n^2, and there what `model.elbo` says with bound="augmented" (or
    "wistuba2018", which is no bound). For two classes it is a lower bound of the evidence for
    every alpha.

    :param model: with a likelihood that has local variables.
    :param data: X [N, D] and Y [N, P], or any others that a fit takes; None: the model's.
    :param alpha: [N, K], positive, as `alpha` returns it; None: the best.
    :param sample_weight: [N], as in a fit.
    :raise ValueError: for bad data, an alpha of another shape or not positive, or a likelihood
        without local variables.
    """
    check_hooks(model.likelihood, "moments")
    rows = ProjectedData(model, open_all(model, data, sample_weight))
    q = compiled_solve(model.natural())
    best, bound = compiled_alpha.bind(model.likelihood), _bound_at.bind(model.likelihood)
    optimal = map_over(rows, lambda part: best(q, part))
    given = optimal if alpha is None else _positive(alpha, "alpha", optimal.shape)
    return float(sum_over(rows, lambda part, values: bound(q, part, values), given) - q.kl)


@takes_estimators
def predict_f_given(
    model: Model, data: Any, local_variables: Any, Xnew: Any
) -> tuple[AnyNDArray, AnyNDArray]:
    r"""
    Prediction given the local variables: p(f(x) | lambda, D) (Wenzel et al. 2017, eq. 5), which for
    a model over all points and penalty = 2 is, with Lambda = diag(lambda),

        N(k^T (K + Lambda)^-1 Y (1 + lambda), k(x, x) - k^T (K + Lambda)^-1 k);

    in general that of s ~ N(P^-1 h, P^-1), P = I + Phi^T Lambda^-1 Phi, h = Phi^T r with the sites
    r_n = y_n (a + 1 / lambda_n), to which the residual variance is added as in `predict_f`. The
    model's own q plays no part. Class probabilities given lambda are
    `model.likelihood.predict_mean_and_var(Xnew, mean, variance)[0]`.

    :param model: of two classes, or of one against the rest: with `local_sites`.
    :param data: X [N, D] and Y [N, P], or any others that a fit takes; None: the model's.
    :param local_variables: lambda, [N, L], positive.
    :param Xnew: [N', D], or whatever `predict_marginals` takes.
    :return: mean and variance of f, both [N', L].
    :raise ValueError: for bad data, lambda of another shape or not positive, or another likelihood.
    """
    check_hooks(model.likelihood, "local_sites")
    rows, likelihood = ProjectedData(model, open_all(model, data)), model.likelihood
    shape = (rows.num_rows, model.num_features[0])
    precisions = 1 / _positive(local_variables, "local_variables", shape)
    sites: Any = likelihood.local_sites  # type: ignore[attr-defined]
    look = lambda part, w: compiled_sum_sites(part, sites(w, part.batch.Y))  # noqa: E731
    sums = sum_over(rows, look, precisions)
    q = compiled_gaussian(sums, tf.zeros([], sums.h.dtype))[1]
    new = ProjectedData(model, open_inputs(model, Xnew))
    mean, variance = map_over(new, lambda part: tuple(compiled_marginals(q, part.features)))
    return mean.numpy(), variance.numpy()


def _positive(values: Any, name: str, shape: Any) -> tf.Tensor:
    given = np.asarray(values)
    if given.shape != tuple(shape):
        raise ValueError(f"{name} must have shape {list(shape)}, got {list(given.shape)}")
    if given.dtype.kind not in "iuf" or not (np.isfinite(given).all() and (given > 0).all()):
        raise ValueError(f"{name} must be positive and finite numbers")
    return to_default_float(given)
