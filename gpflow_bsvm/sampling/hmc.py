"""Hamiltonian Monte Carlo on the pseudo-posterior, by TensorFlow Probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..checks import check_whole
from ..engine.contracts import Model
from ..engine.projection import Projected
from ..engine.shared_graph import Compiled
from .samples import Sampler

#: Maps s [chains, L, M] to log p(s) + sum_n log L(y_n | f_n), [chains].
LogDensity = Callable[[tf.Tensor], tf.Tensor]


class NoUTurn(NamedTuple):
    """Transitions of `HMC`."""

    burn_in: tf.Tensor  #: []

    def kernel(self, log_density: LogDensity) -> Any:
        """:return: TFP's No-U-Turn sampler, which adapts its step size in the burn-in."""
        size = tf.constant(0.1, default_float())
        steps = 4 * self.burn_in // 5
        inner = tfp.mcmc.NoUTurnSampler(log_density, size, max_tree_depth=8)
        return tfp.mcmc.DualAveragingStepSizeAdaptation(inner, num_adaptation_steps=steps)


@dataclass(frozen=True)
class HMC(Sampler):
    """
    Draws of s from p(s) prod_n L(y_n | f_n)^weight by TFP's No-U-Turn sampler, for any likelihood,
    as a reference for `Gibbs` and q. As in `Gibbs`, draws ignore the residual variance of a sparse
    model, and all rows must fit into memory.

    :ivar num_draws: and `num_chains`, `seed`: as in `Gibbs`.
    :ivar burn_in: number of initial draws to discard per chain; the step size adapts in four fifths
        of it.
    """

    def __post_init__(self) -> None:
        check_whole(2, num_chains=self.num_chains)  # TFP's loops squeeze a single chain
        super().__post_init__()

    def _how(self) -> Any:
        """:return: arguments of the graph, including a method `kernel` for the next draw."""
        return NoUTurn(tf.constant(self.burn_in))

    def _start(self, model: Model) -> AnyNDArray:
        """:return: the starts of the chains, [chains, L, M]: draws of the prior."""
        shape = (self.num_chains, *model.q_shape)
        return np.random.default_rng(self.seed).normal(size=shape)

    def _chains(self, model: Model, rows: Projected) -> tuple[Any, Callable[..., Any]]:
        first, some = (graph.bind(model.likelihood) for graph in (_first, _some))
        s = tf.constant(self._start(model), default_float())
        how = self._how()

        def advance(state: tuple[Any, ...], number: tf.Tensor, done: int) -> Any:
            s, results = state
            draws, results = some(s, results, number, how, tf.constant([self.seed, done]), rows)
            return (draws[-1], results), draws

        return (s, first(s, how, rows)), advance


def _log_density(likelihood: Likelihood, rows: Projected) -> LogDensity:
    """:return: a function of s [chains, L, M], log p(s) + sum_n weight_n log L(y_n | f_n)."""
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

    return log_density


@Compiled
def _first(likelihood: Likelihood, s: tf.Tensor, how: Any, rows: Projected) -> Any:
    """:return: the sampler's results before the first draw."""
    return how.kernel(_log_density(likelihood, rows)).bootstrap_results(s)


@Compiled
def _some(
    likelihood: Likelihood,
    s: tf.Tensor,
    results: Any,
    number: tf.Tensor,
    how: Any,
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
        kernel=how.kernel(_log_density(likelihood, rows)),
        trace_fn=None,
        return_final_kernel_results=True,
        seed=seed,
    )
    return draws, results
