"""Exact draws from the pseudo-posterior, by augmentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..engine.contracts import Model
from ..engine.projection import Features, Projected
from ..engine.shared_graph import Compiled
from ..engine.statistics import sum_sites
from ..likelihoods.hooks import Sites
from .samples import Sampler


@dataclass(frozen=True)
class Gibbs(Sampler):
    """
    Gibbs sampling of the pseudo-posterior p(s) prod_n L(y_n | f_n) (Polson & Scott 2011), in
    several chains at once. It alternates between

        1 / lambda_n ~ inverse Gaussian(a / |1 - y_n f_n|, a^2),     a = penalty / 2,
        s ~ N(P^-1 h, P^-1),   P = I + Phi^T diag(1 / lambda) Phi,   h = Phi^T y (a + 1 / lambda).

    Draws ignore the residual variance of a sparse model (f = Phi s + m); a batch or linear model
    has none. All rows must fit into memory. Weights must be 0 or 1, because a power of the
    pseudo-likelihood has another augmentation.

    :ivar num_draws: number of draws to keep per chain.
    :ivar burn_in: number of initial draws to discard per chain.
    :ivar num_chains: number of chains; they start from draws of the prior.
    :ivar seed: seed of all draws.
    """

    needs = ("draw_sites",)

    def _chains(self, model: Model, rows: Projected) -> tuple[Any, Callable[..., Any]]:
        if not np.isin(rows.batch.weight, (0, 1)).all():
            raise ValueError(
                "Gibbs supports only weights of 0 and 1 (and models with num_data None or N): "
                "repeat rows, or use HMC"
            )
        random = tf.random.Generator.from_seed(self.seed)
        sweep = _sweep.bind(model.likelihood)
        s = random.normal([self.num_chains, *model.q_shape], dtype=default_float())

        def advance(state: tuple[Any, ...], number: tf.Tensor, done: int) -> Any:
            s, place = state
            random.reset(place)
            draws = sweep(s, number, random.make_seeds(1)[:, 0], rows)
            return (draws[-1], tf.identity(random.state)), draws

        return (s, tf.identity(random.state)), advance


@Compiled
def _sweep(
    likelihood: Likelihood, s: tf.Tensor, number: tf.Tensor, seed: tf.Tensor, rows: Projected
) -> tf.Tensor:
    """
    :param s: [chains, L, M]; number: number of further draws.
    :return: [number, chains, L, M].
    """
    shape = tf.shape(s)
    chains = shape[0]
    num_latents = shape[1]
    flat = tf.reshape(s, [-1, shape[2]])  # chains become additional latent functions
    wide = _for_chains(rows, chains, num_latents)
    eye = tf.eye(shape[2], dtype=s.dtype)

    def body(n: tf.Tensor, flat: tf.Tensor, seen_so_far: tf.TensorArray) -> Any:
        seeds = tf.random.experimental.stateless_split(
            tf.random.experimental.stateless_fold_in(seed, n), 2
        )
        f = tf.matmul(wide.features.phi, flat[..., None])[..., 0]  # [chains * L, N]
        f = tf.reshape(f, [chains, num_latents, -1])
        F = tf.linalg.matrix_transpose(f) + rows.features.mean  # [chains, N, L]
        w, r = likelihood.draw_sites(F, rows.batch.Y, seeds[0])
        h, P = sum_sites(wide, Sites(_latents_last(w), _latents_last(r)))
        L = tf.linalg.cholesky(P + eye)
        noise = tf.random.stateless_normal(tf.shape(h), seeds[1], dtype=h.dtype)
        half = tf.linalg.triangular_solve(L, h[..., None])[..., 0] + noise
        flat = tf.linalg.triangular_solve(L, half[..., None], adjoint=True)[..., 0]
        return n + 1, flat, seen_so_far.write(n, tf.reshape(flat, shape))

    kept = tf.TensorArray(s.dtype, size=number, element_shape=s.shape)
    *_, kept = tf.while_loop(lambda n, *_: n < number, body, [0, flat, kept])
    return kept.stack()


def _for_chains(rows: Projected, chains: tf.Tensor, num_latents: tf.Tensor) -> Projected:
    """:return: rows with the latent functions of all chains."""
    phi, residual, mean = rows.features
    phi = tf.tile(phi, [tf.where(tf.shape(phi)[0] == 1, 1, chains), 1, 1])
    mean = tf.tile(mean + tf.zeros([1, num_latents], mean.dtype), [1, chains])
    return rows._replace(features=Features(phi, residual, mean))


def _latents_last(part: tf.Tensor) -> tf.Tensor:
    """:return: [chains, N, L] as [N, chains * L]."""
    return tf.reshape(tf.transpose(part, [1, 0, 2]), [tf.shape(part)[1], -1])
