r"""Several rows together: draws of f, what a batch of labels would tell, how many errors there are.

Rows that are alike tell the same. With y_1..y_B the labels of a batch of rows, in nats,

    joint mutual information   I(y_1..y_B; f) = H[E_q p(y_1..y_B | f)] - E_q sum_b H[p(y_b | f)],

which `batch_bald` makes large (Kirsch, van Amersfoort & Gal 2019): greedily, row by row, which has
at least 1 - 1/e of the best batch's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood
from scipy.special import entr

from ..checks import check_whole
from ..engine.contracts import Model, jitter_of, open_inputs
from ..engine.contracts import chunk_rows as default_chunk_rows
from ..engine.natural import Gaussian, compiled_solve
from ..engine.projected_data import ProjectedData
from ..engine.projection import Prior, Projected
from ..engine.shared_graph import Compiled
from ..likelihoods.labels import check_one_label, with_both_classes
from .marginals import map_f, predict_probabilities
from .uncertainty import mutual_information

#: Draws of f at so many rows together take a covariance of some 200 MB.
MOST_ROWS = 5000
#: Labels of a batch that are told apart: all there are up to this number, else a sample of them.
MOST_LABELS = 1024


def draw_f(model: Model, X: Any, *, num_samples: int = 256, seed: int = 0) -> AnyNDArray:
    """
    Draws of f from q, at all rows together: f = Phi s + m + e, s from q, e from the Gaussian process
    that is left of the prior.

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
    of_s, of_f = ((num_samples, L, number) for number in (M, source.num_rows))
    normals = tuple(random.standard_normal(shape).astype(q.c.dtype.name) for shape in (of_s, of_f))
    return np.asarray(_draws.bind(model.prior)(q, rows, jitter_of(model), *normals))


@Compiled
def _draws(
    prior: Prior, q: Gaussian, rows: Projected, jitter: tf.Tensor, z: tf.Tensor, e: tf.Tensor
) -> tf.Tensor:
    """
    :param z: standard normals [S, L, M], and e: [S, L, N].
    :return: [S, N, L].
    """
    phi = rows.features.phi
    K = _gram(prior, rows.batch.X)
    left = K - tf.matmul(phi, phi, transpose_b=True)
    root = tf.linalg.cholesky(left + jitter * tf.eye(tf.shape(left)[-1], dtype=left.dtype))
    s = tf.einsum("lmk,slm->slk", q.R, q.c + z)
    phi, root = (
        tf.broadcast_to(part, [q.c.shape[0], *tf.unstack(tf.shape(part))[1:]])
        for part in (phi, root)
    )
    f = tf.einsum("lnm,slm->snl", phi, s) + tf.einsum("lnk,slk->snl", root, e)
    return f + rows.features.mean


def _gram(prior: Prior, X: tf.Tensor) -> tf.Tensor:
    """:return: [G, N, N], of the prior."""
    from gpflow.kernels import MultioutputKernel

    if isinstance(prior.kernel, MultioutputKernel):
        return prior.kernel(X, full_cov=True, full_output_cov=False)
    return prior.kernel(X)[None]


def _conditional(model: Model, X: Any, num_samples: int, seed: int) -> AnyNDArray:
    """:return: [S, N, C], p(y | f_s) under joint draws f_s."""
    check_one_label(model.likelihood, model.num_features[0])
    F = draw_f(model, X, num_samples=num_samples, seed=seed).transpose(1, 0, 2)
    given = _given_f.bind(model.likelihood)
    chunk_rows = max(1, default_chunk_rows(model) // num_samples)
    p = map_f(model, X, lambda X, mean, variance, F: given(X, F), chunk_rows, tf.constant(F))
    return with_both_classes(p.numpy().transpose(1, 0, 2))


@Compiled
def _given_f(likelihood: Likelihood, X: tf.Tensor, F: tf.Tensor) -> tf.Tensor:
    """:param F: [N, S, L]. :return: [N, S, P], p(y | f)."""
    return tf.transpose(likelihood.conditional_mean(X, tf.transpose(F, [1, 0, 2])), [1, 0, 2])


class ExpectedError(NamedTuple):
    """How many errors a classifier makes by its own probabilities."""

    mean: float  #: as a fraction of the rows
    deviation: float  #: its standard deviation under q


def expected_error(model: Model, X: Any, *, num_samples: int = 256, seed: int = 0) -> ExpectedError:
    """
    The error that a classifier expects of itself on rows without labels: the mean over them of
    1 - max_c p_c, and how sure it is of that. With y_n the predicted class, the deviation is that of
    mean_n (1 - p(y_n | f_s)) over joint draws f_s of q.

    :param X: [N, D], at most `MOST_ROWS` rows.
    :param num_samples: draws S.
    :raise ValueError: as `draw_f`, or if rows have several binary labels.
    """
    check_whole(2, num_samples=num_samples)
    P = _conditional(model, X, num_samples, seed)
    p = with_both_classes(predict_probabilities(model, X))
    right = np.take_along_axis(P, p.argmax(axis=1)[None, :, None], axis=2)[..., 0]
    return ExpectedError(float(np.mean(1 - p.max(axis=1))), float(right.mean(axis=1).std(ddof=1)))


class Batch(NamedTuple):
    """Rows that `batch_bald` has found."""

    index: AnyNDArray  #: [B], in the order in which they were found
    information: AnyNDArray  #: [B], joint mutual information of the first b of them


def batch_bald(
    model: Model,
    X: Any,
    batch_size: int,
    *,
    num_samples: int = 256,
    seed: int = 0,
    num_candidates: int = 500,
) -> Batch:
    """
    Rows whose labels together would tell most of f. One after the other, each that which adds most
    to the joint mutual information of those before.

    :param X: [N, D].
    :param batch_size: B, at most N.
    :param num_samples: joint draws S of f: information beyond log S cannot be seen.
    :param seed: of the draws, and of the sample of labels where there are more than `MOST_LABELS`
        combinations of them.
    :param num_candidates: so many rows, those of the largest `mutual_information`, are looked at.
        What a row adds is never more than that.
    :raise ValueError: as `draw_f`, and for a batch larger than the rows or the candidates.
    """
    check_whole(1, batch_size=batch_size, num_candidates=num_candidates)
    most = min(len(X), num_candidates)
    if batch_size > most:
        raise ValueError(f"batch_size is {batch_size}, and there are {most} rows to choose from")
    candidates = np.arange(len(X))
    if len(X) > num_candidates:
        each = mutual_information(model, X, num_samples=num_samples, seed=seed)
        candidates = np.sort(np.argsort(-each, kind="stable")[:num_candidates])
    P = _conditional(model, np.asarray(X)[candidates], num_samples, seed)
    chosen, information = greedy_batch(P, batch_size, seed=seed)
    return Batch(candidates[chosen], information)


def greedy_batch(P: AnyNDArray, batch_size: int, *, seed: int = 0) -> Batch:
    """
    `batch_bald` of probabilities under draws of f.

    :param P: [S, N, C], p(y_n = c | f_s).
    """
    given, labels, random = (
        entr(P).sum(axis=2).mean(axis=0),
        _none(len(P)),
        np.random.default_rng(seed),
    )
    chosen: list[int] = []
    gains: list[float] = []
    for _ in range(batch_size):
        gain = labels.entropy(P) - given
        gain[chosen] = -np.inf
        chosen.append(int(gain.argmax()))
        gains.append(float(gain[chosen[-1]]))
        labels = labels.with_row(P[:, chosen[-1]], random)
    return Batch(np.array(chosen), np.maximum(np.cumsum(gains), 0))


def joint_mutual_information(P: AnyNDArray, *, seed: int = 0) -> float:
    """
    :param P: [S, B, C], p(y_b = c | f_s) of a batch of rows under joint draws of f.
    :param seed: see `batch_bald`.
    :return: I(y_1..y_B; f), in nats; exact for these draws up to `MOST_LABELS` combinations.
    """
    labels, random, total = _none(len(P)), np.random.default_rng(seed), 0.0
    for b in range(P.shape[1]):
        total += float(labels.entropy(P[:, b : b + 1])[0] - entr(P[:, b]).sum(axis=1).mean())
        labels = labels.with_row(P[:, b], random)
    return total


class _Labels(NamedTuple):
    """Combinations of labels of the rows so far."""

    weight: AnyNDArray  #: [J], their probabilities
    draws: AnyNDArray  #: [J, S], the weight of each draw given the labels

    def entropy(self, P: AnyNDArray) -> AnyNDArray:
        """:return: [N], H(y_n | labels so far), P as in `greedy_batch`."""
        S, N, C = P.shape
        p = (self.draws @ P.reshape(S, -1)).reshape(-1, N, C)
        return np.asarray(self.weight @ entr(p).sum(axis=2))

    def with_row(self, p: AnyNDArray, random: np.random.Generator) -> _Labels:
        """:return: one row more, p [S, C]."""
        both = self.draws[:, None] * p.T
        each = both.sum(axis=2)
        weight = (self.weight[:, None] * each).reshape(-1)
        kept = np.flatnonzero(weight > 0)
        if len(kept) > MOST_LABELS:  # systematic resampling: of equal weight each
            places = (np.arange(MOST_LABELS) + random.random()) / MOST_LABELS
            ends = np.cumsum(weight[kept])
            kept = kept[np.searchsorted(ends / ends[-1], places)]
            weight[kept] = 1 / MOST_LABELS
        draws = both.reshape(len(weight), -1)[kept] / each.reshape(-1, 1)[kept]
        return _Labels(weight[kept] / weight[kept].sum(), draws)


def _none(num_samples: int) -> _Labels:
    """:return: of no rows."""
    return _Labels(np.ones(1), np.full((1, num_samples), 1 / num_samples))
