r"""How sure a classifier is, row by row, and of which kind its doubt is.

With p(y | x) = E_q p(y | f(x)), all for one row x, in nats where it is an entropy:

    variation ratio       1 - max_c P(argmax_j f_j = c): the chance that f, drawn from q, is not
                          for the class that q is most for (Wistuba & Rawat 2018, section 4)
    predictive entropy    H[p(y | x)] = -sum_c p_c log p_c: all doubt
    mutual information    H[p(y | x)] - E_q H[p(y | f)], between y and f: the part of it that more
                          data can remove (Houlsby et al. 2011); the rest is overlap of the classes

With a single latent function there are two classes, by the sign of f. Several rows together:
`joint`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood
from scipy.stats import entropy, norm, qmc

from ..checks import check_whole
from ..engine.contracts import Model
from ..engine.contracts import chunk_rows as default_chunk_rows
from ..engine.shared_graph import Compiled
from ..likelihoods.labels import check_one_label, with_both_classes
from ..likelihoods.maximum import maximum
from .estimators import takes_estimators
from .marginals import map_f, predict_marginals, predict_probabilities


@takes_estimators
def variation_ratio(
    model: Model,
    X: Any,
    *,
    num_samples: int | None = None,
    seed: int = 0,
    chunk_rows: int | None = None,
) -> AnyNDArray:
    """
    1 - max_c P(argmax_j f_j = c), without the noise of the link.

    :param X: [N, D].
    :param num_samples: None: closed form (one class against another) or quadrature, to some 1e-9;
        a number: the share of draws of f that are not for the most frequent class, as the paper
        has it.
    :param seed: of the draws.
    :param chunk_rows: see `gpflow_bsvm.prediction.marginals.predict_marginals`.
    :return: [N], from 0 (sure) to 1 - 1/C.
    :raise ValueError: as `predict_marginals`, or if rows have several binary labels.
    """
    _check(model, num_samples)
    normals = None if num_samples is None else _normals(model, num_samples, seed)
    decide = getattr(model.likelihood, "decisions", lambda *f: f)

    def look(_: tf.Tensor, *f: tf.Tensor) -> AnyNDArray:
        mean, variance = decide(*f)
        return _ratio(mean, variance, normals)

    return np.asarray(map_f(model, X, look, chunk_rows))


def _ratio(mean: tf.Tensor, variance: tf.Tensor, normals: tf.Tensor | None) -> AnyNDArray:
    """:return: [N], of functions [N, L] of which the largest decides, or of one its sign."""
    if normals is not None:
        return 1 - _shares(mean, variance, normals[:, : mean.shape[1]]).numpy().max(axis=-1)
    if mean.shape[1] == 1:
        return np.asarray(norm.cdf(-abs(mean) / np.sqrt(variance))[:, 0])
    return 1 - _largest(mean, variance).numpy().max(axis=-1)


@takes_estimators
def predictive_entropy(model: Model, X: Any, *, chunk_rows: int | None = None) -> AnyNDArray:
    """
    H[p(y | x)] of the probabilities that `model.predict_y` gives.

    Arguments and errors as in `variation_ratio`.

    :return: [N], in nats, from 0 to log C.
    """
    _check(model)
    p = predict_probabilities(model, X, chunk_rows=chunk_rows)
    return np.asarray(entropy(with_both_classes(p), axis=-1))


@takes_estimators
def mutual_information(
    model: Model,
    X: Any,
    *,
    num_samples: int = 256,
    seed: int = 0,
    chunk_rows: int | None = None,
) -> AnyNDArray:
    """
    H[mean_s p(y | f_s)] - mean_s H[p(y | f_s)] over quasi-random draws f_s of q, the same for all
    rows: never negative, and smooth in x.

    Arguments and errors as in `variation_ratio`.

    :param num_samples: draws S, best a power of 2. The error falls almost as 1/S.
    :return: [N], in nats, from 0 to log C.
    """
    _check(model, num_samples)
    normals, conditional = _normals(model, num_samples, seed), _conditional.bind(model.likelihood)

    def finish(X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor) -> AnyNDArray:
        p = with_both_classes(np.asarray(conditional(X, mean, variance, normals)))
        return np.asarray(entropy(p.mean(axis=0), axis=-1) - entropy(p, axis=-1).mean(axis=0))

    if chunk_rows is None:
        chunk_rows = max(1, default_chunk_rows(model) // num_samples)
    return np.maximum(map_f(model, X, finish, chunk_rows).numpy(), 0)


@Compiled
def _conditional(
    likelihood: Likelihood, X: tf.Tensor, Fmu: tf.Tensor, Fvar: tf.Tensor, normals: tf.Tensor
) -> tf.Tensor:
    """:return: [S, N, P], p(y | f_s)."""
    F = Fmu + tf.sqrt(Fvar) * normals[:, None]
    return likelihood.conditional_mean(X, F)


#: [N, C], P(argmax_j f_j = c).
_largest = Compiled(lambda Fmu, Fvar: maximum(Fmu, Fvar).probability)


@Compiled
def _shares(Fmu: tf.Tensor, Fvar: tf.Tensor, normals: tf.Tensor) -> tf.Tensor:
    """:return: [N, C], how often each class was the largest."""
    F = Fmu + tf.sqrt(Fvar) * normals[:, None]
    if F.shape[-1] == 1:
        F = tf.concat([tf.zeros_like(F), F], axis=-1)
    hot = tf.one_hot(tf.argmax(F, axis=-1), F.shape[-1], dtype=F.dtype)
    return tf.reduce_mean(hot, axis=0)


def _normals(model: Model, num_samples: int, seed: int) -> tf.Tensor:
    """:return: quasi-random standard normals [S, L]."""
    num_latents, dtype = model.num_features[0], model.natural().h.dtype
    draws = qmc.MultivariateNormalQMC(np.zeros(num_latents), seed=seed).random(num_samples)
    return tf.constant(draws, dtype)


def _check(model: Model, num_samples: int | None = None) -> None:
    if num_samples is not None:
        check_whole(1, num_samples=num_samples)
    check_one_label(model.likelihood, model.num_features[0])


@takes_estimators
def margin(model: Model, X: Any, *, chunk_rows: int | None = None) -> AnyNDArray:
    """
    The largest probability less the second largest: *small* where a prediction is in doubt.

    Arguments and errors as in `gpflow_bsvm.prediction.variation_ratio`.

    :return: [N], from 0 to 1.
    """
    check_one_label(model.likelihood, model.num_features[0])
    p = with_both_classes(predict_probabilities(model, X, chunk_rows=chunk_rows))
    largest = np.partition(p, -2, axis=1)
    return np.asarray(largest[:, -1] - largest[:, -2])


@takes_estimators
def latent_variance(model: Model, X: Any, *, chunk_rows: int | None = None) -> AnyNDArray:
    """
    Variance of f(x) under q, the mean over latent functions: large where there are no data,
    whatever the classes there.

    Arguments and errors as in `gpflow_bsvm.prediction.predict_marginals`.

    :return: [N], in squared margins.
    """
    return np.asarray(predict_marginals(model, X, chunk_rows=chunk_rows)[1].mean(axis=1))
