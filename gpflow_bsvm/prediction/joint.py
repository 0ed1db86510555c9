"""Several rows together: draws of f, and how many errors a classifier expects of itself."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.kernels import MultioutputKernel
from gpflow.likelihoods import Likelihood

from ..checks import check_whole
from ..engine.contracts import Model, jitter_of
from ..engine.contracts import chunk_rows as default_chunk_rows
from ..engine.natural import Gaussian, compiled_solve
from ..engine.open import open_inputs
from ..engine.projected_data import ProjectedData
from ..engine.projection import Prior, Projected
from ..engine.shared_graph import Compiled
from ..likelihoods.labels import check_one_label, with_both_classes
from .estimators import takes_estimators
from .marginals import map_f, predict_probabilities

#: Draws of f at so many rows together take a covariance of some 200 MB.
MOST_ROWS = 5000


@takes_estimators
def draw_f(model: Model, X: Any, *, num_samples: int = 256, seed: int = 0) -> AnyNDArray:
    """
    Draws of f from q, at all rows together: f = Phi s + m + e, with s from q, and e from the
    Gaussian process that the features leave of the prior.

    :param X: [N, D], at most `MOST_ROWS` rows.
    :param num_samples: S.
    :return: [S, N, L].
    :raise ValueError: as `gpflow_bsvm.prediction.predict_marginals`, and for more rows.
    """
    check_whole(1, num_samples=num_samples)
    source = open_inputs(model, X)
    if source.num_rows > MOST_ROWS:
        raise ValueError(
            f"joint draws of {source.num_rows} rows need their covariance; give at most "
            f"{MOST_ROWS} rows, such as a random part of them"
        )
    rows, q = ProjectedData(model, source).everything(), compiled_solve(model.natural())
    random, (L, M) = np.random.default_rng(seed), q.c.shape
    z = random.standard_normal((L, M, num_samples)).astype(q.c.dtype.name)
    e = random.standard_normal((L, source.num_rows, num_samples)).astype(q.c.dtype.name)
    return np.asarray(_draws.bind(model.prior)(q, rows, jitter_of(model), z, e))


@Compiled
def _draws(
    prior: Prior, q: Gaussian, rows: Projected, jitter: tf.Tensor, z: tf.Tensor, e: tf.Tensor
) -> tf.Tensor:
    """
    :param z: standard normals [L, M, S], and e: [L, N, S].
    :return: [S, N, L].
    """
    kernel, (X, _, _), phi = cast(Any, prior.kernel), rows.batch, rows.features.phi
    shared = not isinstance(kernel, MultioutputKernel)
    K = kernel(X)[None] if shared else kernel(X, full_cov=True, full_output_cov=False)
    left = K - tf.matmul(phi, phi, transpose_b=True)
    root = tf.linalg.cholesky(left + jitter * tf.eye(tf.shape(left)[-1], dtype=left.dtype))
    s = tf.matmul(q.R, q.c[..., None] + z, transpose_a=True)
    # What latent functions share is there once, and goes with each.
    return tf.transpose(tf.matmul(phi, s) + tf.matmul(root, e)) + rows.features.mean


@takes_estimators
def draw_probabilities(
    model: Model, X: Any, *, num_samples: int = 256, seed: int = 0
) -> AnyNDArray:
    """
    p(y = c | f_s) under the draws of `draw_f`; arguments and errors as there.

    :return: [S, N, C].
    :raise ValueError: if rows have several binary labels.
    """
    check_one_label(model.likelihood, model.num_features[0])
    F = draw_f(model, X, num_samples=num_samples, seed=seed).transpose(1, 0, 2)
    given = _given_f.bind(model.likelihood)
    chunk_rows = max(1, default_chunk_rows(model) // num_samples)
    p = map_f(model, X, lambda X, mean, variance, F: given(X, F), chunk_rows, tf.constant(F))
    return with_both_classes(p.numpy().transpose(1, 0, 2))


@Compiled
def _given_f(likelihood: Likelihood, X: tf.Tensor, F: tf.Tensor) -> tf.Tensor:
    """
    :param F: [N, S, L].
    :return: [N, S, P], p(y | f).
    """
    return tf.transpose(likelihood.conditional_mean(X, tf.transpose(F, [1, 0, 2])), [1, 0, 2])


class ExpectedError(NamedTuple):
    """How many errors a classifier makes by its own probabilities."""

    mean: float  #: as a fraction of the rows
    deviation: float  #: its standard deviation under q


@takes_estimators
def expected_error(model: Model, X: Any, *, num_samples: int = 256, seed: int = 0) -> ExpectedError:
    """
    The error that a classifier expects of itself on rows without labels, the mean over them of
    1 - max_c p_c, and how sure it is of that: with y_n the predicted classes, the deviation of
    mean_n (1 - p(y_n | f_s)) over joint draws f_s of q. The noise of labels given f is no part of
    it.

    :param X: [N, D], at most `MOST_ROWS` rows.
    :param num_samples: draws S.
    :raise ValueError: as `draw_f`, or if rows have several binary labels.
    """
    check_whole(2, num_samples=num_samples)
    P = draw_probabilities(model, X, num_samples=num_samples, seed=seed)
    p = with_both_classes(predict_probabilities(model, X))
    right = np.take_along_axis(P, p.argmax(axis=1)[None, :, None], axis=2)[..., 0]
    return ExpectedError(float(np.mean(1 - p.max(axis=1))), float(right.mean(axis=1).std(ddof=1)))
