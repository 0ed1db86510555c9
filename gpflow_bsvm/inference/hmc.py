"""Hamiltonian Monte Carlo on the pseudo-posterior, by TensorFlow Probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..checks import check_whole
from ..engine.contracts import Model
from ..engine.projection import Projected
from ..engine.shared_graph import Compiled
from .samples import Sampler


@dataclass(frozen=True)
class HMC(Sampler):
    """
    Draws of s from p(s) prod_n L(y_n | f_n)^weight by TFP's No-U-Turn sampler, its step size
    adapted during the burn-in, for any likelihood: what `Gibbs` and q are compared with. As there,
    the residual variance of a sparse model plays no part, and rows are all in memory.

    :ivar num_draws: and `num_chains`, `seed`: as in `Gibbs`.
    :ivar burn_in: first draws of each chain, not kept; the step size adapts in four fifths of it.
    """

    num_draws: int = 1000
    burn_in: int = 500
    num_chains: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole(1, num_draws=self.num_draws, num_chains=self.num_chains)
        check_whole(0, burn_in=self.burn_in, seed=self.seed)

    def _begin(self, model: Model, rows: Projected) -> Any:
        first, some = (graph.bind(model.likelihood) for graph in (_first, _some))
        start = np.random.default_rng(self.seed).normal(size=(self.num_chains, *model.num_features))
        s, burn_in = tf.constant(start, default_float()), tf.constant(self.burn_in)

        def advance(state: Any, number: tf.Tensor, done: int) -> Any:
            s, results = state
            draws, results = some(s, results, number, burn_in, tf.constant([self.seed, done]), rows)
            return (draws[-1], results), draws

        return (s, first(s, burn_in, rows)), advance


def _kernel(likelihood: Likelihood, rows: Projected, burn_in: tf.Tensor) -> Any:
    X, Y, weight = rows.batch

    def log_density(s: tf.Tensor) -> tf.Tensor:
        f = tf.matmul(rows.features.phi, s[..., None])[..., 0]  # [chains, L, N]
        F = tf.linalg.matrix_transpose(f) + rows.features.mean
        shape = tf.concat([tf.shape(F)[:-1], tf.shape(Y)[-1:]], axis=0)
        log_L = likelihood.log_prob(X, F, tf.broadcast_to(Y, shape))
        prior = -0.5 * tf.reduce_sum(tf.square(s), axis=[-2, -1])
        return prior + tf.reduce_sum(weight[:, 0] * log_L, axis=-1)

    size = tf.constant(0.1, default_float())
    return tfp.mcmc.DualAveragingStepSizeAdaptation(
        tfp.mcmc.NoUTurnSampler(log_density, size, max_tree_depth=8),
        num_adaptation_steps=4 * burn_in // 5,
    )


@Compiled
def _first(likelihood: Likelihood, s: tf.Tensor, burn_in: tf.Tensor, rows: Projected) -> Any:
    """:return: what the kernel keeps, before the first draw."""
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
    :param s: [chains, L, M], and results: of the draw before.
    :return: draws [number, chains, L, M], and the results of the last.
    """
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
