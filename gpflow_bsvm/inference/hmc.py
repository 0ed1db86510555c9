"""Hamiltonian Monte Carlo on the pseudo-posterior, by TensorFlow Probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import RegressionData
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..checks import check_least
from ..engine.projected_data import EngineModel
from ..engine.shared_graph import Compiled
from ..engine.statistics import Rows
from .samples import Draws, rows_of_all


@dataclass(frozen=True)
class HMC:
    """
    Draws of s from p(s) prod_n L(y_n | f_n)^weight by TFP's No-U-Turn sampler, its step size
    adapted during the burn-in, for any likelihood: what `Gibbs` and q are compared with. As there,
    the residual variance of a sparse model plays no part, and rows are all in memory.

    :ivar num_draws: kept of each chain.
    :ivar burn_in: first draws of each chain, not kept; the step size adapts in four fifths of it.
    :ivar num_chains: started from draws of the prior.
    :ivar seed: of all draws.
    """

    num_draws: int = 1000
    burn_in: int = 500
    num_chains: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        check_least(1, num_draws=self.num_draws, num_chains=self.num_chains)
        check_least(0, burn_in=self.burn_in)

    def run(
        self,
        model: EngineModel,
        data: RegressionData | None = None,
        *,
        sample_weight: Any = None,
    ) -> Draws:
        """
        Arguments and errors as in `Gibbs.run`; weights are any powers of the likelihood.

        :return: the draws.
        """
        rows = rows_of_all(model, data, sample_weight)
        sample = _sample.bind(model.likelihood)
        start = np.random.default_rng(self.seed).normal(size=(self.num_chains, *model.num_features))
        lengths = (tf.constant(number) for number in (self.num_draws, self.burn_in))
        seed = tf.constant([self.seed, 0])
        s = sample(tf.constant(start, default_float()), *lengths, seed, *rows)
        return Draws(np.moveaxis(s.numpy(), 0, 1), model)


@Compiled
def _sample(
    likelihood: Likelihood,
    start: tf.Tensor,
    num_draws: tf.Tensor,
    burn_in: tf.Tensor,
    seed: tf.Tensor,
    *rows: tf.Tensor,
) -> tf.Tensor:
    """
    :param start: [chains, L, M].
    :return: [num_draws, chains, L, M].
    """
    seen = Rows(*rows)

    def log_density(s: tf.Tensor) -> tf.Tensor:
        f = tf.matmul(seen.features, s[..., None])[..., 0]  # [chains, L, N]
        F = tf.linalg.matrix_transpose(f) + seen.prior_mean
        log_L = likelihood.log_prob(seen.X, F, tf.broadcast_to(seen.Y, _batched(seen.Y, F)))
        prior = -0.5 * tf.reduce_sum(tf.square(s), axis=[-2, -1])
        return prior + tf.reduce_sum(seen.weight[:, 0] * log_L, axis=-1)

    size = tf.constant(0.1, start.dtype)
    kernel = tfp.mcmc.DualAveragingStepSizeAdaptation(
        tfp.mcmc.NoUTurnSampler(log_density, size, max_tree_depth=8),
        num_adaptation_steps=4 * burn_in // 5,
    )
    return tfp.mcmc.sample_chain(
        num_draws,
        start,
        kernel=kernel,
        num_burnin_steps=burn_in,
        trace_fn=None,
        seed=seed,
    )


def _batched(Y: tf.Tensor, F: tf.Tensor) -> tf.Tensor:
    return tf.concat([tf.shape(F)[:-1], tf.shape(Y)[-1:]], axis=0)
