"""A single natural-gradient step, in closed form."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import RegressionData

from ..checks import check_rate
from ..data.batch import Batch
from .contracts import Model
from .natural import Natural, blend, solve
from .projection import Projected
from .statistics import Marginals, accumulate, marginals, marginals_of_few


def natural_gradient_step(
    model: Model, data: RegressionData, learning_rate: float | tf.Tensor
) -> Natural:
    """
    (h, P) <- (1 - rho) (h, P) + rho (s sum_n r_n Phi_n, I + s sum_n w_n Phi_n Phi_n^T) with
    s = num_data / B (Wenzel et al. 2017, eq. 9-10; Algorithm 1).

    :param model: holds q and projects x; it is not changed.
    :param data: X [B, D] and Y [B, P].
    :param learning_rate: rho in (0, 1].
    :return: the new natural parameters.
    :raise ValueError: for a number outside (0, 1].
    """
    X, Y = (tf.convert_to_tensor(array) for array in data)
    if not tf.is_tensor(learning_rate) and not isinstance(learning_rate, tf.Variable):
        # tf.cast would go through float32
        learning_rate = tf.constant(check_rate(learning_rate=learning_rate), X.dtype)
    old = model.natural()
    q = solve(old)
    weight = tf.ones_like(X[:, :1])
    if model.num_data is not None:
        weight *= tf.cast(model.num_data, X.dtype) / tf.cast(tf.shape(X)[0], X.dtype)
    rows = Projected(Batch(X, Y, weight), model.projector()(X))
    sums = accumulate(model.likelihood, rows, marginals(rows.features.phi, q.R, q.c)).sums
    return blend(old, sums, tf.cast(learning_rate, X.dtype))


def batch_marginals(phi: tf.Tensor, q: Natural) -> Marginals:
    """:return: `marginals` of a minibatch under q, by the cheaper of two ways."""
    num_rows, num_features = phi.shape[1], q.P.shape[-1]
    if num_rows is not None and num_rows < num_features:
        return marginals_of_few(tf.cast(phi, q.h.dtype), tf.linalg.cholesky(q.P), q.h)
    solution = solve(q)
    return marginals(phi, solution.R, solution.c)
