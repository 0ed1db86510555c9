"""Joint predictions of several rows: draws of f, and a classifier's expected error."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray

from ..checks import check_whole
from ..data.passes import map_over
from ..engine.contracts import Model, chunk_rows, jitter_of
from ..engine.open import open_inputs
from ..likelihoods.labels import check_one_label, with_both_classes
from .estimators import in_units_of_y, of_f, takes_estimators
from .marginals import predict_probabilities
from .uncertainty import given_f

#: Largest number of rows in a joint draw, with a covariance of some 200 MB.
MOST_ROWS = 5000


@in_units_of_y(of_f)
@check_shapes("return: [S, N, L]")
def draw_f(model: Model, X: Any, *, num_samples: int = 256, seed: int = 0) -> AnyNDArray:
    """
    Joint draws of f at all rows under q.

    :param X: [N, D], at most `MOST_ROWS` rows.
    :param num_samples: S.
    :return: f at all rows.
    :raise ValueError: as in `gpflow_bsvm.prediction.predict_marginals`, and for too many rows.
    """
    check_whole(1, num_samples=num_samples)
    source = open_inputs(model, X)
    if source.num_rows > MOST_ROWS:
        raise ValueError(
            f"joint draws of {source.num_rows} rows need their covariance; give at most "
            f"{MOST_ROWS} rows, such as a random part of them"
        )
    X = map_over(source, attrgetter("X"))
    mean, covariance = model.predict_f(X, full_cov=True)  # [N, L], [L, N, N]
    jitter = jitter_of(model) * tf.eye(len(X), dtype=mean.dtype)
    shape = (*covariance.shape[:2], num_samples)
    z = np.random.default_rng(seed).standard_normal(shape).astype(mean.dtype.name)
    f = tf.matmul(tf.linalg.cholesky(covariance + jitter), z)
    return np.asarray(mean + tf.transpose(f))


@takes_estimators
@check_shapes("return: [S, N, C]")
def draw_probabilities(
    model: Model, X: Any, *, num_samples: int = 256, seed: int = 0
) -> AnyNDArray:
    """
    p(y = c | f_s) under the draws of `draw_f`. Arguments and errors are the same.

    :return: probabilities of all classes.
    :raise ValueError: as in `gpflow_bsvm.prediction.variation_ratio`.
    """
    check_one_label(model.likelihood, model.q_shape[0])
    X = map_over(open_inputs(model, X), attrgetter("X"))
    F = draw_f(model, X.numpy(), num_samples=num_samples, seed=seed)
    F = np.moveaxis(F, -1, 0)  # [L, S, N]
    given = given_f.bind(model.likelihood)
    size = max(1, chunk_rows(model) // num_samples)
    parts = [given(X[n : n + size], F[..., n : n + size]) for n in range(0, len(X), size)]
    return with_both_classes(np.concatenate(parts, axis=1))


class ExpectedError(NamedTuple):
    """A classifier's error, estimated from its own probabilities."""

    mean: float  #: as a fraction of the rows
    deviation: float  #: its standard deviation under q


@takes_estimators
def expected_error(model: Model, X: Any, *, num_samples: int = 256, seed: int = 0) -> ExpectedError:
    """
    The expected error of a classifier on unlabelled rows, the mean over rows of 1 - max_c p_c. Its
    uncertainty is the deviation of mean_n (1 - p(y_n | f_s)) over joint draws f_s of q, with y_n
    the predicted classes. This excludes the noise of labels given f.

    :param X: [N, D], at most `MOST_ROWS` rows.
    :param num_samples: number of draws S.
    :raise ValueError: as in `draw_f`, or if rows have several binary labels.
    """
    check_whole(2, num_samples=num_samples)
    P = draw_probabilities(model, X, num_samples=num_samples, seed=seed)
    p = with_both_classes(predict_probabilities(model, X))
    right = np.take_along_axis(P, p.argmax(axis=1)[None, :, None], axis=2)[..., 0]
    return ExpectedError(float(np.mean(1 - p.max(axis=1))), float(right.mean(axis=1).std(ddof=1)))
