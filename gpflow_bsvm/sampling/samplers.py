"""Draws from the pseudo-posterior: by augmentation, or by Hamiltonian Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..checks import check_elbo, check_whole
from ..engine.contracts import Model
from ..engine.projection import Features, Projected
from ..engine.shared_graph import Compiled
from ..engine.statistics import sum_sites
from ..likelihoods.base import Sites
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
        flat = _draw(h, P + eye, seeds[1])
        return n + 1, flat, seen_so_far.write(n, tf.reshape(flat, shape))

    kept = tf.TensorArray(s.dtype, size=number, element_shape=s.shape)
    *_, kept = tf.while_loop(lambda n, *_: n < number, body, [0, flat, kept])
    return kept.stack()


def _draw(h: tf.Tensor, P: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """:return: a draw of N(P^-1 h, P^-1) for each h [chains * L, M]."""
    L = tf.linalg.cholesky(P)
    noise = tf.random.stateless_normal(tf.shape(h), seed, dtype=h.dtype)
    half = tf.linalg.triangular_solve(L, h[..., None])[..., 0] + noise
    return tf.linalg.triangular_solve(L, half[..., None], adjoint=True)[..., 0]


def _for_chains(rows: Projected, chains: tf.Tensor, num_latents: tf.Tensor) -> Projected:
    """:return: rows with the latent functions of all chains."""
    phi, residual, mean = rows.features
    phi = tf.tile(phi, [tf.where(tf.shape(phi)[0] == 1, 1, chains), 1, 1])
    mean = tf.tile(mean + tf.zeros([1, num_latents], mean.dtype), [1, chains])
    return rows._replace(features=Features(phi, residual, mean))


def _latents_last(part: tf.Tensor) -> tf.Tensor:
    """:return: [chains, N, L] as [N, chains * L]."""
    return tf.reshape(tf.transpose(part, [1, 0, 2]), [tf.shape(part)[1], -1])


@dataclass(frozen=True)
class HMC(Sampler):
    """
    Draws of s from p(s) prod_n L(y_n | f_n)^weight with TFP's No-U-Turn sampler, for any
    likelihood, as a reference for `Gibbs` and q. As in `Gibbs`, draws ignore the residual variance
    of a sparse model, and all rows must fit into memory.

    :ivar num_draws: as in `Gibbs`; so are `num_chains` (at least 2) and `seed`.
    :ivar burn_in: number of initial draws to discard per chain; the step size adapts during four
        fifths of these.
    """

    def __post_init__(self) -> None:
        check_whole(2, num_chains=self.num_chains)  # TFP's loops squeeze a single chain
        super().__post_init__()

    def _chains(self, model: Model, rows: Projected) -> tuple[Any, Callable[..., Any]]:
        first, some = (graph.bind(model.likelihood) for graph in (_first, _some))
        shape = (self.num_chains, *model.q_shape)
        normal = np.random.default_rng(self.seed).normal(size=shape)
        s = tf.constant(normal, default_float())  # chains start from draws of the prior
        burn_in = tf.constant(self.burn_in)

        def advance(state: tuple[Any, ...], number: tf.Tensor, done: int) -> Any:
            s, results = state
            seed = tf.constant([self.seed % 2**31, done])  # TFP takes 32 bits
            draws, results = some(s, results, number, burn_in, seed, rows)
            return (draws[-1], results), draws

        results = first(s, burn_in, rows)
        # Chains without a finite density would never move.
        check_elbo(np.max(results.inner_results.target_log_prob), "at the start")
        return (s, results), advance


def _kernel(likelihood: Likelihood, rows: Projected, burn_in: tf.Tensor) -> Any:
    """
    :return: TFP's No-U-Turn sampler of log p(s) + sum_n weight_n log L(y_n | f_n), [chains], for s
        [chains, L, M]; it adapts its step size in the burn-in.
    """
    X, Y, weight = rows.batch

    def log_density(s: tf.Tensor) -> tf.Tensor:
        f = tf.matmul(rows.features.phi, s[..., None])[..., 0]  # [chains, L, N]
        F = tf.linalg.matrix_transpose(f) + rows.features.mean
        # Put rows of all chains in one axis, as GPflow's `Softmax` requires.
        chains = [tf.shape(F)[0], 1]
        seen = tf.tile(X, chains) if tf.is_tensor(X) else X
        log_L = likelihood.log_prob(seen, tf.reshape(F, [-1, tf.shape(F)[-1]]), tf.tile(Y, chains))
        log_L = tf.reshape(log_L, tf.shape(F)[:-1])
        prior = -0.5 * tf.reduce_sum(tf.square(s), axis=[-2, -1])
        return prior + tf.reduce_sum(weight[:, 0] * log_L, axis=-1)

    size = tf.constant(0.1, default_float())
    inner = tfp.mcmc.NoUTurnSampler(log_density, size, max_tree_depth=8)
    steps = 4 * burn_in // 5
    return tfp.mcmc.DualAveragingStepSizeAdaptation(inner, num_adaptation_steps=steps)


@Compiled
def _first(likelihood: Likelihood, s: tf.Tensor, burn_in: tf.Tensor, rows: Projected) -> Any:
    """:return: the sampler's results before the first draw."""
    return _kernel(likelihood, rows, burn_in).bootstrap_results(s)


@Compiled
def _some(
    likelihood: Likelihood,
    s: tf.Tensor,
    results: Any,
    number: tf.Tensor,
    burn_in: tf.Tensor,
    seed: tf.Tensor,
    rows: Projected,
) -> tuple[tf.Tensor, Any]:
    """
    :param s: [chains, L, M], the previous draw; results: the sampler's results for it.
    :return: draws [number, chains, L, M], and the sampler's results for the last draw.
    """
    # A loop must keep its number of chains: vectors have a static shape, matrices do not.
    chains = results.inner_results.log_accept_ratio.shape
    s = tf.ensure_shape(s, [*chains, None, None])
    draws, _, results = tfp.mcmc.sample_chain(
        number,
        s,
        previous_kernel_results=results,
        kernel=_kernel(likelihood, rows, burn_in),
        trace_fn=None,
        return_final_kernel_results=True,
        seed=seed,
    )
    return draws, results
