"""The augmentation's local variables lambda of each row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes
from gpflow.base import AnyNDArray, TensorType
from gpflow.utilities import to_default_float

from ..checks import check_whole
from ..data.passes import map_over, sum_over
from ..engine.contracts import Model, open_all, open_inputs
from ..engine.natural import Gaussian, compiled_gaussian, compiled_solve
from ..engine.projected_data import ProjectedData
from ..engine.projection import Projected
from ..engine.shared_graph import Compiled
from ..engine.statistics import compiled_marginals, compiled_sum_sites, marginals_of_f
from ..likelihoods.base import check_hook
from .estimators import in_units_of_y, of_moments, takes_estimators
from .marginals import map_labelled


@dataclass(frozen=True)
class LocalVariables:
    r"""
    Independent distributions of local variables lambda,

        q(lambda) = GIG(1/2, a^2, alpha),    a = penalty / 2,
        density ~ lambda^(-1/2) exp(-(a^2 lambda + alpha / lambda) / 2),

    of the scale mixture exp(-penalty max(0, b)) = int p(y, lambda | f) dlambda (Polson & Scott
    2011). alpha = E b^2 is optimal for a q(f) (Wenzel et al. 2017, eq. 8); alpha = b^2 gives
    p(lambda | f, y).

    :ivar alpha: [N, K], positive, for K losses per row.
    :ivar penalty: [N, K] or a single number, positive, penalty times cost of each loss.
    """

    alpha: Any
    penalty: Any

    @property
    def mean(self) -> AnyNDArray:
        """:return: E lambda = sqrt(alpha) / a + 1 / a^2, [N, K]."""
        a = np.asarray(self.penalty) / 2
        return np.asarray(np.sqrt(self.alpha) / a + 1 / np.square(a))

    @property
    def mean_inverse(self) -> AnyNDArray:
        """:return: E 1 / lambda = a / sqrt(alpha), [N, K]: the precision of the site of f."""
        return np.asarray(self.penalty / (2 * np.sqrt(self.alpha)))

    @property
    def distribution(self) -> tfp.distributions.Distribution:
        """
        :return: the TFP distribution of lambda (`log_prob`, `sample(number, seed=...)`) with batch
            shape [N, K]: 1 / lambda is inverse Gaussian with mean a / sqrt(alpha) and shape a^2.
        """
        loc = to_default_float(self.mean_inverse)
        shape = tf.ones_like(loc) * to_default_float(np.square(np.asarray(self.penalty) / 2))
        inverse = tfp.distributions.InverseGaussian(loc, shape)
        return tfp.distributions.TransformedDistribution(inverse, tfp.bijectors.Reciprocal())


@takes_estimators
def local_variables(model: Model, data: Any) -> LocalVariables:
    """
    The local variables of every row at the model's current q, q(lambda_n) = GIG(1/2, a^2, alpha_n),
    with alpha_n = E b_n^2. For two classes, this is (1 - y_n mu_n)^2 + v_n (Wenzel et al. 2017,
    section 4.1). For `CrammerSinger`, b = 1 + R - f_y, where R is the largest rival, or with
    bound="wistuba2018" the rival of largest mean (Wistuba & Rawat 2018, Algorithm 1).

    :param model: a model whose likelihood is `CrammerSinger` or a sum of hinges, such as `Hinge`.
        Its `bound` does not matter.
    :param data: X [N, D] and Y [N, P], or other data accepted by a fit.
    :return: local variables of K losses per row, one per hinge; K = 1 for `CrammerSinger`.
    :raise ValueError: for bad data, or a likelihood without local variables.
    """
    check_hook(model.likelihood, "moments")
    alpha, penalty = map_labelled(model, data, _square_and_cost)
    return LocalVariables(alpha.numpy(), penalty.numpy())


def _square_and_cost(
    likelihood: Any, X: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """:return: E b^2 of each loss, and penalty times its cost, both [N, K]."""
    _, square, cost = likelihood.moments(Fmu, Fvar, Y)
    return square, cost


@takes_estimators
@check_shapes("return: [n]")
def soft_support_vectors(model: Model, data: Any, num: int | None = None) -> AnyNDArray:
    """
    The rows nearest to the margin (y f = 1, or f_y = 1 + the largest rival), according to the alpha
    of their `local_variables`.

    :param num: number of rows; if None, all rows with alpha < 1. A row with known f = 0 (for
        several classes, with all f equal) has alpha = 1.
    :return: row indices, smallest alpha first (the smallest over a row's losses).
    """
    if num is not None:
        check_whole(0, num=num)
    smallest = local_variables(model, data).alpha.min(axis=-1)
    order = np.argsort(smallest, kind="stable")
    return order[: int((smallest < 1).sum()) if num is None else num]


@check_shapes(
    "alpha: [batch..., K]", "Fmu: [batch..., L]", "Fvar: [batch..., L]", "return: [batch...]"
)
def bound_at(
    likelihood: Any, alpha: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
) -> tf.Tensor:
    """:return: E_q [log p(y, lambda | f) - log q(lambda)] of each row, see `augmented_elbo`."""
    mean, square, cost = likelihood.moments(Fmu, Fvar, Y)
    root = tf.sqrt(tf.cast(alpha, mean.dtype))
    terms = -cost / 2 * (mean + (root + square / root) / 2)
    kappas = likelihood.log_kappa() + tf.zeros_like(likelihood.losses(Y, Fmu))
    return tf.reduce_sum(kappas, axis=-1) + tf.reduce_sum(terms, axis=-1)


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
    The papers' objective as a function of q and local variables q(lambda_n) = GIG(1/2, a^2,
    alpha_n) with any alpha (Wenzel et al. 2017, eq. 8; Wistuba & Rawat 2018, eq. 12 with corrected
    sign), with its constants. For rows of one loss and weight 1, without normalizer, it is

        sum_n [-a E b_n - (a / 2) (sqrt(alpha_n) + E b_n^2 / sqrt(alpha_n))] - KL(q || p).

    The maximum, at alpha_n = E b_n^2, equals `model.elbo` with bound="augmented" (or "wistuba2018",
    which is not a bound). For two classes, it is a lower bound of the evidence for every alpha.

    :param model: a model whose likelihood has local variables.
    :param data: X [N, D] and Y [N, P], or other data accepted by a fit; if None, the model's.
    :param alpha: [N, K], positive, as in `local_variables`; if None, the optimum.
    :param sample_weight: [N], as in a fit.
    :raise ValueError: for bad data, an alpha that is not positive or of wrong shape, or a
        likelihood without local variables.
    """
    check_hook(model.likelihood, "moments")
    rows = ProjectedData(model, open_all(model, data, sample_weight))
    q = compiled_solve(model.natural())
    bound = _bound_at.bind(model.likelihood)
    optimal = local_variables(model, data).alpha
    given = optimal if alpha is None else _positive(alpha, "alpha", optimal.shape)
    return float(sum_over(rows, partial(bound, q), given) - q.kl)


@in_units_of_y(of_moments)
def predict_f_given(
    model: Model, data: Any, local_variables: Any, Xnew: Any, *, sample_weight: Any = None
) -> tuple[AnyNDArray, AnyNDArray]:
    r"""
    Prediction given the local variables: p(f(x) | lambda, D) (Wenzel et al. 2017, eq. 5). For a
    model over all points and penalty = 2, with Lambda = diag(lambda), it is

        N(k^T (K + Lambda)^-1 Y (1 + lambda), k(x, x) - k^T (K + Lambda)^-1 k).

    In general, s ~ N(P^-1 h, P^-1), P = I + Phi^T Lambda^-1 Phi, h = Phi^T r with the sites r_n =
    y_n (a + 1 / lambda_n); the residual variance is added as in `predict_f`. The prediction does
    not depend on the model's q. Class probabilities given lambda are
    `model.likelihood.predict_mean_and_var(Xnew, mean, variance)[0]`.

    :param model: a model whose losses depend on one latent function each (with `local_sites`), such
        as one for two classes, one-vs-rest, or regression.
    :param data: X [N, D] and Y [N, P], or other data accepted by a fit; if None, the model's.
    :param local_variables: lambda, [N, K], positive, for the losses of `local_variables`.
    :param Xnew: [N', D], or other inputs accepted by `predict_marginals`.
    :param sample_weight: [N], as in the fit; a row of weight 2 counts as two sites.
    :return: mean and variance of f, both [N', L].
    :raise ValueError: for bad data, a lambda not positive or of wrong shape, or no `local_sites`.
    """
    check_hook(model.likelihood, "local_sites")
    rows = ProjectedData(model, open_all(model, data, sample_weight))
    shape = map_labelled(model, data, _square_and_cost)[0].shape
    precisions = 1 / _positive(local_variables, "local_variables", shape)
    sites: Any = model.likelihood.local_sites

    def look(part: Projected, w: tf.Tensor) -> Any:
        return compiled_sum_sites(part, sites(w, part.batch.Y))

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
