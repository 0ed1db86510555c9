"""Measures of a classifier's uncertainty, row by row; joint draws of f, and the expected error."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood
from scipy.stats import entropy, qmc

from ..checks import check_whole
from ..data.passes import map_over
from ..engine.contracts import Model, chunk_rows, jitter_of, open_inputs
from ..engine.natural import root_of_covariance
from ..engine.shared_graph import Compiled
from ..likelihoods.base import probabilities
from ..likelihoods.labels import check_one_label, with_both_classes
from ..likelihoods.maximum import favoured
from .estimators import in_units_of_y, of_f, of_variance, takes_classifiers
from .marginals import map_f, predict_marginals, predict_probabilities


@takes_classifiers
@check_shapes("return: [N]")
def variation_ratio(model: Model, X: Any) -> AnyNDArray:
    """
    1 - max_c P(argmax_j f_j = c): the probability that a draw of f from q does not favor the class
    favored most (Wistuba & Rawat 2018, section 4). With two classes, a draw favors the class of
    probability above 1/2; with ordered classes, the median of p(y | f). Without the link's noise,
    this is in closed form (two classes, or ordered classes) or by quadrature (error about 1e-9).

    :return: [N], from 0 (certain) to 1 - 1/C.
    :raise ValueError: as in `predict_marginals`, for a likelihood without class probabilities, or
        if rows have several binary labels.
    :raise sklearn.exceptions.NotFittedError: for a `OneClassBSVM` that is not calibrated.
    """
    check_one_label(model.likelihood, model.q_shape[0])
    decide = getattr(model.likelihood, "favoured", favoured)

    def look(_: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor) -> AnyNDArray:
        chances = np.sort(decide(mean, variance), axis=-1)
        return np.asarray(chances[:, :-1].sum(axis=-1))  # more precise than 1 - the largest

    return np.asarray(map_f(model, X, look))


@takes_classifiers
@check_shapes("return: [N]")
def predictive_entropy(model: Model, X: Any) -> AnyNDArray:
    """
    The total uncertainty H[p(y | x)] = -sum_c p_c log p_c, p as in `predict_probabilities`.

    Arguments and errors are as in `variation_ratio`.

    :return: nats, from 0 to log C.
    """
    check_one_label(model.likelihood, model.q_shape[0])
    p = with_both_classes(predict_probabilities(model, X))
    return np.asarray(entropy(p, axis=-1))


@takes_classifiers
@check_shapes("return: [N]")
def mutual_information(
    model: Model, X: Any, *, num_samples: int = 256, seed: int = 0
) -> AnyNDArray:
    """
    H[p(y | x)] - E_q H[p(y | f)], the part of the entropy that more data can remove (Houlsby et al.
    2011); the rest is class overlap. The means are over quasi-random draws f_s of q, the same for
    all rows, so that the result is never negative, and smooth in x.

    Arguments and errors are as in `variation_ratio`.

    :param num_samples: number of draws S, ideally a power of 2. The error decreases almost as 1/S.
    :return: [N], in nats, from 0 to log C.
    """
    check_whole(1, num_samples=num_samples)
    check_one_label(model.likelihood, model.q_shape[0])
    given = given_f.bind(model.likelihood)
    num_latents = model.q_shape[0]
    draws = qmc.MultivariateNormalQMC(np.zeros(num_latents), seed=seed).random(num_samples)
    normals = tf.constant(draws.T[:, :, None], model.natural().h.dtype)  # [L, S, 1]

    def finish(X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor) -> AnyNDArray:
        Fmu, deviation = (tf.transpose(part)[:, None] for part in (mean, tf.sqrt(variance)))
        p = with_both_classes(np.asarray(given(X, Fmu + deviation * normals)))
        return np.asarray(entropy(p.mean(axis=0), axis=-1) - entropy(p, axis=-1).mean(axis=0))

    size = max(1, chunk_rows(model) // num_samples)
    return np.maximum(map_f(model, X, finish, size).numpy(), 0)


@Compiled
def given_f(likelihood: Likelihood, X: tf.Tensor, F: tf.Tensor) -> tf.Tensor:
    """:return: p(y | f), [S, N, P], for F [L, S, N]."""
    L, S, N = tf.unstack(tf.shape(F))
    rows = tf.reshape(tf.transpose(F, [1, 2, 0]), [-1, L])  # GPflow's MultiClass takes no batches
    return tf.reshape(probabilities(likelihood, tf.tile(X, [S, 1]), rows), [S, N, -1])


@takes_classifiers
@check_shapes("return: [N]")
def margin(model: Model, X: Any) -> AnyNDArray:
    """
    The largest probability minus the second largest, *small* for uncertain predictions.

    Arguments and errors are as in `gpflow_bsvm.prediction.variation_ratio`.

    :return: [N], from 0 to 1.
    """
    check_one_label(model.likelihood, model.q_shape[0])
    p = with_both_classes(predict_probabilities(model, X))
    largest = np.partition(p, -2, axis=1)
    return np.asarray(largest[:, -1] - largest[:, -2])


@in_units_of_y(of_variance)
@check_shapes("return: [N]")
def latent_variance(model: Model, X: Any) -> AnyNDArray:
    """
    Variance of f(x) under q, averaged over latent functions. It is large far from all data.

    Arguments and errors are as in `gpflow_bsvm.prediction.predict_marginals`.

    :return: [N], in squared margins; for a regressor in squared units of y.
    """
    return np.asarray(predict_marginals(model, X)[1].mean(axis=1))


#: Largest number of rows in a joint draw of one latent function, with a covariance of 200 MB.
MOST_ROWS = 5000


@in_units_of_y(of_f)
@check_shapes("return: [S, N, L]")
def draw_f(model: Model, X: Any, *, num_samples: int = 256, seed: int = 0) -> AnyNDArray:
    """
    Joint draws of f at all rows under q.

    :param X: [N, D], with N at most `MOST_ROWS` / sqrt(L), because covariances are [L, N, N].
    :param num_samples: S.
    :return: f at all rows.
    :raise ValueError: as in `gpflow_bsvm.prediction.predict_marginals`, and for too many rows.
    """
    check_whole(1, num_samples=num_samples)
    source = open_inputs(model, X)
    most = int(MOST_ROWS / model.q_shape[0] ** 0.5)
    if source.num_rows > most:
        raise ValueError(
            f"joint draws of {source.num_rows} rows need their covariance; give at most {most} "
            "rows, for example a random sample"
        )
    X = map_over(source, attrgetter("X"))
    mean, covariance = model.predict_f(X, full_cov=True)  # [N, L], [L, N, N]
    jitter = jitter_of(model)
    covariance += jitter * tf.eye(len(X), dtype=mean.dtype)
    shape = (*covariance.shape[:2], num_samples)
    z = np.random.default_rng(seed).standard_normal(shape).astype(mean.dtype.name)
    f = tf.matmul(root_of_covariance(covariance, jitter), z)
    return np.asarray(mean + tf.transpose(f))


@in_units_of_y(of_classes=True, by_class=True)
@check_shapes("return: [S, N, C]")
def draw_probabilities(
    model: Model, X: Any, *, num_samples: int = 256, seed: int = 0
) -> AnyNDArray:
    """
    p(y = c | f_s) for the draws f_s of `draw_f`, with the same arguments and errors.

    The mean over draws estimates `predict_probabilities`, except if the link does not average p(y |
    f): for `OneClass`, one-vs-rest likelihoods, and levels with link="stationary", a scale other
    than 1, or a W of your own. Differences of .1 were seen.

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


@takes_classifiers
def expected_error(model: Model, X: Any, *, num_samples: int = 256, seed: int = 0) -> ExpectedError:
    """
    The expected error of a classifier on unlabeled rows, the mean over rows of 1 - max_c p_c. Its
    uncertainty is the standard deviation of mean_n (1 - p(y_n | f_s)) over joint draws f_s of q,
    with y_n the predicted classes. The noise of labels given f is excluded.

    :param X: [N, D], at most as many rows as for `draw_f`.
    :param num_samples: number of draws S.
    :raise ValueError: as in `draw_f`, or if rows have several binary labels.
    """
    check_whole(2, num_samples=num_samples)
    P = draw_probabilities(model, X, num_samples=num_samples, seed=seed)
    p = with_both_classes(predict_probabilities(model, X))
    right = np.take_along_axis(P, p.argmax(axis=1)[None, :, None], axis=2)[..., 0]
    return ExpectedError(float(np.mean(1 - p.max(axis=1))), float(right.mean(axis=1).std(ddof=1)))
