r"""Measures of a classifier's uncertainty, row by row.

With p(y | x) = E_q p(y | f(x)) for a single row x, and entropies in nats:

    variation ratio       1 - max_c P(argmax_j f_j = c): the probability that f, drawn from q,
                          favours another class than q does (Wistuba & Rawat 2018, section 4);
                          for two classes by the side of the link's 1/2, for ordered classes
                          by the median of p(y | f)
    predictive entropy    H[p(y | x)] = -sum_c p_c log p_c: the total uncertainty
    mutual information    H[p(y | x)] - E_q H[p(y | f)], between y and f: the part of it that more
                          data can remove (Houlsby et al. 2011); the rest is overlap of classes

For several rows together see `joint`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood
from scipy.stats import entropy, qmc

from ..checks import check_whole
from ..engine.contracts import Model, chunk_rows
from ..engine.shared_graph import Compiled
from ..likelihoods.base import probabilities
from ..likelihoods.labels import check_one_label, with_both_classes
from ..likelihoods.maximum import favoured
from .estimators import in_units_of_y, of_variance, takes_estimators
from .marginals import map_f, predict_marginals, predict_probabilities


@takes_estimators
@check_shapes("return: [N]")
def variation_ratio(model: Model, X: Any) -> AnyNDArray:
    """
    1 - max_c P(f favours class c), without the link's noise: in closed form (two or ordered
    classes) or by quadrature (error about 1e-9).

    :return: a number from 0 (certain) to 1 - 1/C.
    :raise ValueError: as in `predict_marginals`, for a likelihood without class probabilities, or
        if rows have several binary labels.
    """
    check_one_label(model.likelihood, model.q_shape[0])
    decide = getattr(model.likelihood, "favoured", favoured)

    def look(_: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor) -> AnyNDArray:
        chances = np.sort(decide(mean, variance), axis=-1)
        return np.asarray(chances[:, :-1].sum(axis=-1))  # 1 - the largest would round

    return np.asarray(map_f(model, X, look))


@takes_estimators
@check_shapes("return: [N]")
def predictive_entropy(model: Model, X: Any) -> AnyNDArray:
    """
    H[p(y | x)] of `gpflow_bsvm.prediction.predict_probabilities`.

    Arguments and errors as in `variation_ratio`.

    :return: nats, from 0 to log C.
    """
    check_one_label(model.likelihood, model.q_shape[0])
    p = with_both_classes(predict_probabilities(model, X))
    return np.asarray(entropy(p, axis=-1))


@takes_estimators
@check_shapes("return: [N]")
def mutual_information(
    model: Model, X: Any, *, num_samples: int = 256, seed: int = 0
) -> AnyNDArray:
    """
    H[mean_s p(y | f_s)] - mean_s H[p(y | f_s)] over quasi-random draws f_s of q, the same for all
    rows, so that it is never negative and smooth in x.

    Arguments and errors as in `variation_ratio`.

    :param num_samples: number of draws S, best a power of 2. The error decreases almost as 1/S.
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
    return probabilities(likelihood, X, tf.transpose(F, [1, 2, 0]))


@takes_estimators
@check_shapes("return: [N]")
def margin(model: Model, X: Any) -> AnyNDArray:
    """
    The largest probability minus the second largest, *small* for uncertain predictions.

    Arguments and errors as in `gpflow_bsvm.prediction.variation_ratio`.

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
    Variance of f(x) under q, averaged over latent functions. It is large far from all data of any
    class.

    Arguments and errors as in `gpflow_bsvm.prediction.predict_marginals`.

    :return: [N], in squared margins; for a regressor in squared units of y.
    """
    return np.asarray(predict_marginals(model, X)[1].mean(axis=1))
