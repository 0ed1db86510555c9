"""Hamiltonian Monte Carlo by trajectories of a fixed length, as in Gold and Sollich."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray
from gpflow.config import default_float

from ...checks import check_number, check_whole
from ...engine.contracts import Model
from ...engine.natural import compiled_solve
from ...sampling.hmc import HMC, LogDensity
from ...sampling.samples import Sampler

#: A quarter period of the prior's dynamics: a trajectory of this length makes a draw independent of
#: the one before, twice as long its mirror image, four times as long the same again.
_LONGEST = math.pi / 2
#: Least and most leapfrog steps of a trajectory where the sampler chooses their number.
_FEWEST, _MOST = 15, 500


class Leapfrog(NamedTuple):
    """The moves of `StaticHMC`."""

    burn_in: tf.Tensor  #: []
    step_size: tf.Tensor  #: [], the first
    fewest: tf.Tensor  #: [], steps of a trajectory
    most: tf.Tensor  #: []

    def kernel(self, log_density: LogDensity) -> Any:
        """:return: TFP's Hamiltonian Monte Carlo, whose steps adapt in the burn-in."""
        steps, first = 4 * self.burn_in // 5, self.step_size
        inner = tfp.mcmc.HamiltonianMonteCarlo(log_density, first, self.number(first))
        longest = _LONGEST / tf.cast(self.fewest, first.dtype)

        def set_size(results: Any, size: tf.Tensor) -> Any:
            # Without adaptation, TFP would continue with a step of 1.
            size = tf.where(steps > 0, tf.minimum(size, longest), first)
            sizes = {"step_size": size, "num_leapfrog_steps": self.number(size)}
            return results._replace(accepted_results=results.accepted_results._replace(**sizes))

        return tfp.mcmc.DualAveragingStepSizeAdaptation(
            inner, num_adaptation_steps=steps, step_size_setter_fn=set_size
        )

    def number(self, size: tf.Tensor) -> tf.Tensor:
        """:return: the number of steps of this size in a trajectory, []."""
        whole = tf.cast(tf.minimum(_LONGEST / size + 1e-9, 1e6), tf.int32)
        return tf.clip_by_value(whole, self.fewest, self.most)


@dataclass(frozen=True)
class StaticHMC(HMC):
    r"""
    As `HMC`, by trajectories of leapfrog steps of a fixed length (Gold & Sollich 2003, section 4.2,
    eq. 21-23). Where f = Lz s with a square Lz, so that K = Lz Lz^T is its prior covariance,

        H = 1/2 p^T K p + 1/2 f^T K^-1 f - sum_n log L(y_n | f_n),    theta = K^-1 f = Lz^-T s,
        d theta / dt = p,    d p / dt = -theta + d/df sum_n log L(y_n | f_n),

    is the same motion as d s / dt = Lz^T p, with Lz^T p ~ N(0, I): in s the mass is 1, nothing is
    inverted, and theta follows from a triangular solve. The paper renews one p_n at a time, because
    it has no Lz; here all are drawn anew before each trajectory.

    Chains start at draws of the model's q: of the prior as long as it is not fitted, at the mode
    after `ECM`. The step size adapts in four fifths of the burn-in, so that three of four
    trajectories are accepted: a steep loss has short steps. Trajectories have length pi / 2, a
    quarter period of f under the prior, at most; if `leapfrog_steps` is not given they take the
    steps that this needs, 15 to 500.

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
        Sampler.__post_init__(self)  # a single chain will do
        if self.leapfrog_steps is not None:
            check_whole(1, leapfrog_steps=self.leapfrog_steps)
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
