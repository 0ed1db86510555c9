"""The loop of `ML2`: natural-gradient steps on q, and steps of Adam on the hyperparameters.

When the hyperparameters move, the whitened q(s) stays as it is. (To keep the sums of the sites in
the space of u instead, so that q follows as in the dual view of Adam et al. 2021, was slower on
every set that was tried: its sums are those of the old features.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from gpflow.likelihoods import Likelihood

from ..data.batch import Batch, take
from ..engine.hyperparameters import Plan
from ..engine.natural import Gaussian, Natural, blend, solve
from ..engine.natural_gradient import batch_marginals
from ..engine.projection import Projected, prior_factor, project
from ..engine.shared_graph import Compiled
from ..engine.statistics import accumulate, localise, marginals

#: Adam's own constants (Kingma & Ba 2015).
_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8


class Adam(NamedTuple):
    """What Adam remembers of every learned value, and a step of it."""

    step: tf.Tensor  #: [], steps so far
    mean: tuple[tf.Tensor, ...]  #: of gradients
    square: tuple[tf.Tensor, ...]  #: of squared gradients

    @staticmethod
    def start(values: Sequence[Any]) -> Adam:
        """:return: nothing remembered."""
        zeros = tuple(tf.zeros_like(value) for value in values)
        return Adam(tf.zeros([], values[0].dtype), zeros, zeros)

    def move(
        self, values: list[tf.Tensor], gradient: list[tf.Tensor], rate: tf.Tensor
    ) -> tuple[list[tf.Tensor], Adam]:
        """:return: the values after a step uphill, and what to remember."""
        step = self.step + 1
        mean = tuple(_BETA_1 * m + (1 - _BETA_1) * g for m, g in zip(self.mean, gradient))
        square = tuple(_BETA_2 * s + (1 - _BETA_2) * g * g for s, g in zip(self.square, gradient))
        size = rate * tf.sqrt(1 - _BETA_2**step) / (1 - _BETA_1**step)
        moved = [v + size * m / (tf.sqrt(s) + _EPSILON) for v, m, s in zip(values, mean, square)]
        return moved, Adam(step, mean, square)


class Loop(NamedTuple):
    """Where the loop stands."""

    natural: Natural
    values: tuple[tf.Tensor, ...]  #: unconstrained, of all parameters of the modules
    adam: Adam


def _learn(
    rebuild: Callable[..., Any],
    values: list[tf.Tensor],
    natural: Natural,
    adam: Adam,
    constants: Constants,
    rates: tf.Tensor,
    moves: tf.Tensor,
    index: tf.Tensor,
    rows: Batch,
) -> Loop:
    """
    For t = 0..T-1 a natural-gradient step on the minibatch of rows index[t], and where moves[t]
    a step of Adam on the same rows.

    :param rates: [T], of the natural-gradient steps.
    :param moves: [T], booleans.
    :param index: [T, B].
    """
    stepper = _Stepper(rebuild, values, constants)

    def body(t: tf.Tensor, loop: Loop, Lz: tf.Tensor) -> Any:
        batch = take(rows, index[t])
        loop = stepper.step(loop, Lz, batch, rates[t])
        loop, Lz = tf.cond(moves[t], lambda: stepper.learn(loop, batch), lambda: (loop, Lz))
        return t + 1, loop, Lz

    loop = Loop(natural, tuple(values), adam)
    start = (0, loop, stepper.factor(loop.values))
    num_steps = tf.shape(index)[0]
    _, loop, _ = tf.while_loop(lambda t, *_: t < num_steps, body, start, parallel_iterations=1)
    return Loop(*loop)


class Constants(NamedTuple):
    """What does not change in a block."""

    scale: tf.Tensor  #: [], num_data / B
    jitter: tf.Tensor  #: [], of Kuu
    adam_rate: tf.Tensor  #: []


compiled_learn = Compiled(_learn, rebuilds=True)


class _Stepper:
    """The two kinds of step, for modules that `rebuild` makes of values."""

    def __init__(
        self, rebuild: Callable[..., Any], values: list[tf.Tensor], constants: Constants
    ) -> None:
        self._rebuild, self._constants = rebuild, constants
        self._plan: Plan = rebuild(values)[-1]

    def factor(self, values: tuple[tf.Tensor, ...]) -> tf.Tensor:
        """:return: Lz [G, M, M]."""
        return prior_factor(self._rebuild(list(values))[1], self._constants.jitter)

    def step(self, loop: Loop, Lz: tf.Tensor, batch: Batch, rho: tf.Tensor) -> Loop:
        """:return: the loop after a natural-gradient step of size rho."""
        likelihood, rows = self._project(loop.values, Lz, batch)
        sums = accumulate(likelihood, rows, batch_marginals(rows.features.phi, loop.natural)).sums
        sums = Natural(*(self._constants.scale * part for part in sums))
        return loop._replace(natural=blend(loop.natural, sums, rho))

    def learn(self, loop: Loop, batch: Batch) -> tuple[Loop, tf.Tensor]:
        """:return: the loop after a step of Adam, and Lz there."""
        mine, q = self._plan.trainable(loop.values), solve(loop.natural)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(mine)
            bound = self._expectation(self._plan.merge(loop.values, mine), q, batch)
            bound += self._plan.log_prior(mine)
        gradient = tape.gradient(bound, mine, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        mine, adam = loop.adam.move(mine, gradient, self._constants.adam_rate)
        values = self._plan.merge(loop.values, mine)
        return Loop(loop.natural, values, adam), self.factor(values)

    def _expectation(self, values: tuple[tf.Tensor, ...], q: Gaussian, batch: Batch) -> tf.Tensor:
        """:return: the part of the bound that depends on the hyperparameters."""
        likelihood, rows = self._project(values, self.factor(values), batch)
        local = localise(likelihood, rows, marginals(rows.features.phi, q.R, q.c))
        return self._constants.scale * tf.reduce_sum(local.expectation)

    def _project(
        self, values: tuple[tf.Tensor, ...], Lz: tf.Tensor, batch: Batch
    ) -> tuple[Likelihood, Projected]:
        likelihood, prior, _ = self._rebuild(list(values))
        return likelihood, Projected(batch, project(prior, batch.X, Lz))
