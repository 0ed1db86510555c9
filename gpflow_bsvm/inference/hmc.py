"""Hamiltonian Monte Carlo on the pseudo-posterior, by TensorFlow Probability."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..checks import check_number, check_whole
from ..engine.contracts import Model
from ..engine.natural import compiled_solve
from ..engine.projection import Projected
from ..engine.shared_graph import Compiled
from .samples import Sampler

#: A quarter of the period that all directions have which no label bends: a draw that has gone so
#: far is independent of the one before, one twice as far its mirror image, one four times as far
#: the same again.
_LONGEST = math.pi / 2
#: Leapfrog steps of a trajectory whose number is left to the sampler, at least and at most.
_FEWEST, _MOST = 15, 500


class NoUTurn(NamedTuple):
    """What the graph of `HMC` is told."""

    burn_in: tf.Tensor  #: []


class Leapfrog(NamedTuple):
    """What the graph of `StaticHMC` is told."""

    burn_in: tf.Tensor  #: []
    step_size: tf.Tensor  #: [], the first
    fewest: tf.Tensor  #: [], steps of a trajectory
    most: tf.Tensor  #: []


class Hamiltonian(Sampler):
    """What `HMC` and `StaticHMC` have in common."""

    @abstractmethod
    def _how(self) -> NoUTurn | Leapfrog:
        """:return: what the graph is told."""

    @abstractmethod
    def _start(self, model: Model) -> AnyNDArray:
        """:return: where the chains start, [chains, L, M]."""

    def _begin(self, model: Model, rows: Projected) -> Any:
        first, some = (graph.bind(model.likelihood) for graph in (_first, _some))
        s, how = tf.constant(self._start(model), default_float()), self._how()

        def advance(state: Any, number: tf.Tensor, done: int) -> Any:
            s, results = state
            draws, results = some(s, results, number, how, tf.constant([self.seed, done]), rows)
            return (draws[-1], results), draws

        return (s, first(s, how, rows)), advance


@dataclass(frozen=True)
class HMC(Hamiltonian):
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
        check_whole(1, num_draws=self.num_draws)
        check_whole(2, num_chains=self.num_chains)  # TFP's loops lose the shape of a single one
        check_whole(0, burn_in=self.burn_in, seed=self.seed)

    def _how(self) -> NoUTurn:
        return NoUTurn(tf.constant(self.burn_in))

    def _start(self, model: Model) -> AnyNDArray:
        """Draws of the prior."""
        shape = (self.num_chains, *model.num_features)
        return np.random.default_rng(self.seed).normal(size=shape)


@dataclass(frozen=True)
class StaticHMC(Hamiltonian):
    r"""
    As `HMC`, by trajectories of leapfrog steps that do not look for their end (Gold & Sollich 2003,
    section 4.2, eq. 21-23). Where f = Lz s with a square Lz, so that K = Lz Lz^T is its prior
    covariance,

        H = 1/2 p^T K p + 1/2 f^T K^-1 f - sum_n log L(y_n | f_n),    theta = K^-1 f = Lz^-T s,
        d theta / dt = p,    d p / dt = -theta + d/df sum_n log L(y_n | f_n),

    is the same motion as d s / dt = Lz^T p, with Lz^T p ~ N(0, I): in s the mass is 1, nothing is
    inverted, and theta is had by a triangular solve. The paper renews one p_n at a time, as it has
    no Lz; here all of them are drawn anew before each trajectory.

    Chains start at draws of the model's q: of the prior as long as it is not fitted, at the mode
    after `ECM`. The step size adapts in four fifths of the burn-in, so that three of four
    trajectories are accepted: a steep loss has short steps. No trajectory takes longer than pi / 2,
    a quarter of the period of f under the prior, and as long each is, by as many steps as that
    takes, 15 to 500, if `leapfrog_steps` does not say how many.

    :ivar num_draws: and `num_chains`, `seed`: as in `Gibbs`. More chains cost little.
    :ivar burn_in: first draws of each chain, not kept.
    :ivar leapfrog_steps: of each trajectory; None: as many as make it pi / 2 long.
    :ivar step_size: the first, in units of the whitened s; without burn-in, of all.
    """

    takes_q = True

    num_draws: int = 500
    burn_in: int = 300
    num_chains: int = 16
    seed: int = 0
    leapfrog_steps: int | None = None
    step_size: float = 0.1

    def __post_init__(self) -> None:
        check_whole(1, num_draws=self.num_draws, num_chains=self.num_chains)
        if self.leapfrog_steps is not None:
            check_whole(1, leapfrog_steps=self.leapfrog_steps)
        check_whole(0, burn_in=self.burn_in, seed=self.seed)
        check_number(1e-9, step_size=self.step_size)

    def _how(self) -> Leapfrog:
        given = self.leapfrog_steps
        fewest, most = (_FEWEST, _MOST) if given is None else (given, given)
        size = tf.constant(min(self.step_size, _LONGEST / fewest), default_float())
        return Leapfrog(tf.constant(self.burn_in), size, tf.constant(fewest), tf.constant(most))

    def _start(self, model: Model) -> AnyNDArray:
        q = compiled_solve(model.natural())
        shape = (self.num_chains, *model.num_features)
        noise = np.random.default_rng(self.seed).normal(size=shape)
        return np.einsum("lkm,clk->clm", q.R.numpy(), q.c.numpy() + noise)


def _log_density(likelihood: Likelihood, rows: Projected) -> Callable[[tf.Tensor], tf.Tensor]:
    """:return: log p(s) + sum_n weight_n log L(y_n | f_n), a function of s [chains, L, M]."""
    X, Y, weight = rows.batch

    def log_density(s: tf.Tensor) -> tf.Tensor:
        f = tf.matmul(rows.features.phi, s[..., None])[..., 0]  # [chains, L, N]
        F = tf.linalg.matrix_transpose(f) + rows.features.mean
        # Rows of all chains in a row: GPflow's `Softmax` takes one axis of rows.
        chains = [tf.shape(F)[0], 1]
        seen = tf.tile(X, chains) if tf.is_tensor(X) else X
        log_L = likelihood.log_prob(seen, tf.reshape(F, [-1, tf.shape(F)[-1]]), tf.tile(Y, chains))
        log_L = tf.reshape(log_L, tf.shape(F)[:-1])
        prior = -0.5 * tf.reduce_sum(tf.square(s), axis=[-2, -1])
        return prior + tf.reduce_sum(weight[:, 0] * log_L, axis=-1)

    return log_density


def _kernel(likelihood: Likelihood, rows: Projected, how: NoUTurn | Leapfrog) -> Any:
    log_density = _log_density(likelihood, rows)
    steps = 4 * how.burn_in // 5
    if isinstance(how, NoUTurn):
        size = tf.constant(0.1, default_float())
        inner = tfp.mcmc.NoUTurnSampler(log_density, size, max_tree_depth=8)
        return tfp.mcmc.DualAveragingStepSizeAdaptation(inner, num_adaptation_steps=steps)
    number = _number(how, how.step_size)
    inner = tfp.mcmc.HamiltonianMonteCarlo(log_density, how.step_size, number)
    longest = _LONGEST / tf.cast(how.fewest, how.step_size.dtype)

    def set_size(results: Any, size: tf.Tensor) -> Any:
        # Where nothing adapts, TFP would go on with a step of 1.
        size = tf.where(steps > 0, tf.minimum(size, longest), how.step_size)
        sizes = {"step_size": size, "num_leapfrog_steps": _number(how, size)}
        return results._replace(accepted_results=results.accepted_results._replace(**sizes))

    return tfp.mcmc.DualAveragingStepSizeAdaptation(
        inner, num_adaptation_steps=steps, step_size_setter_fn=set_size
    )


def _number(how: Leapfrog, size: tf.Tensor) -> tf.Tensor:
    """:return: how many steps of this size a trajectory has, []."""
    whole = tf.cast(tf.minimum(_LONGEST / size + 1e-9, 1e6), tf.int32)
    return tf.clip_by_value(whole, how.fewest, how.most)


@Compiled
def _first(likelihood: Likelihood, s: tf.Tensor, how: NoUTurn | Leapfrog, rows: Projected) -> Any:
    """:return: what the kernel keeps, before the first draw."""
    return _kernel(likelihood, rows, how).bootstrap_results(s)


@Compiled
def _some(
    likelihood: Likelihood,
    s: tf.Tensor,
    results: Any,
    number: tf.Tensor,
    how: NoUTurn | Leapfrog,
    seed: tf.Tensor,
    rows: Projected,
) -> tuple[tf.Tensor, Any]:
    """
    :param s: [chains, L, M], and results: of the draw before.
    :return: draws [number, chains, L, M], and the results of the last.
    """
    # A loop wants the number of chains that it began with, which vectors keep and matrices do not.
    chains = results.inner_results.log_accept_ratio.shape
    s = tf.ensure_shape(s, [*chains, None, None])
    draws, _, results = tfp.mcmc.sample_chain(
        number,
        s,
        previous_kernel_results=results,
        kernel=_kernel(likelihood, rows, how),
        trace_fn=None,
        return_final_kernel_results=True,
        seed=seed,
    )
    return draws, results
