"""The loop of `ML2`: natural-gradient steps on q, and steps of Adam on the hyperparameters.

When the hyperparameters move, the whitened q(s) stays as it is. (To keep the sums of the sites in
the space of u instead, so that q follows as in the dual view of Adam et al. 2021, was slower on
every set that was tried: its sums are those of the old features.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from ..engine.hyperparameters import Plan
from ..engine.natural import Gaussian, Natural, blend, solve
from ..engine.natural_gradient import batch_marginals
from ..engine.shared_graph import Compiled
from ..engine.statistics import Rows, accumulate, localise, marginals, prior_factor, project

#: Adam's own constants (Kingma & Ba 2015).
_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8


class Adam(NamedTuple):
    """What Adam remembers of every learned value, and a step of it."""

    step: tf.Tensor  #: [], steps so far
    mean: tuple[tf.Tensor, ...]  #: of gradients
    square: tuple[tf.Tensor, ...]  #: of squared gradients

    @staticmethod
    def start(values: list[tf.Tensor]) -> Adam:
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


class Point(NamedTuple):
    """Where the loop stands."""

    natural: Natural
    values: tuple[tf.Tensor, ...]  #: unconstrained, of all parameters of the modules
    adam: Adam

    @staticmethod
    def of(natural: Any, values: Any, adam: Any) -> Point:
        """:return: a point of what a graph returned."""
        return Point(Natural(*natural), tuple(values), Adam(*adam))


def _learn(
    rebuild: Callable[..., Any],
    values: list[tf.Tensor],
    h: tf.Tensor,
    P: tf.Tensor,
    scale: tf.Tensor,
    jitter: tf.Tensor,
    adam_rate: tf.Tensor,
    rates: tf.Tensor,
    moves: tf.Tensor,
    index: tf.Tensor,
    X: tf.Tensor,
    Y: tf.Tensor,
    weight: tf.Tensor,
    adam_step: tf.Tensor,
    *adam: tf.Tensor,
) -> Point:
    """
    For t = 0..T-1 a natural-gradient step on the minibatch of rows index[t], and where moves[t]
    a step of Adam on the same rows.

    :param scale: num_data / B.
    :param rates: [T], of the natural-gradient steps.
    :param moves: [T], booleans.
    :param index: [T, B], row numbers in X [n, D], Y [n, P] and weight [n, 1].
    :param adam: what it remembers, means and then squares.
    """
    *_, plan = rebuild(values)
    half = len(adam) // 2
    machine = _Machine(rebuild, plan, scale, jitter, adam_rate)
    point = Point(
        Natural(h, P), tuple(values), Adam(adam_step, tuple(adam[:half]), tuple(adam[half:]))
    )

    def body(t: tf.Tensor, point: Point, Lz: tf.Tensor) -> Any:
        batch = tuple(tf.gather(column, index[t]) for column in (X, Y, weight))
        point = machine.step(point, Lz, batch, rates[t])
        point, Lz = tf.cond(moves[t], lambda: machine.learn(point, batch), lambda: (point, Lz))
        return t + 1, point, Lz

    start = (0, point, machine.factor(point.values))
    num_steps = tf.shape(index)[0]
    _, point, _ = tf.while_loop(lambda t, *_: t < num_steps, body, start, parallel_iterations=1)
    return Point.of(*point)


compiled_learn = Compiled(_learn, rebuilds=True)


class _Machine:
    """The two kinds of step, for modules that `rebuild` makes of values."""

    def __init__(
        self,
        rebuild: Callable[..., Any],
        plan: Plan,
        scale: tf.Tensor,
        jitter: tf.Tensor,
        adam_rate: tf.Tensor,
    ) -> None:
        self._rebuild, self._plan = rebuild, plan
        self._scale, self._jitter, self._adam_rate = scale, jitter, adam_rate

    def factor(self, values: tuple[tf.Tensor, ...]) -> tf.Tensor:
        """:return: Lz [G, M, M]."""
        _, kernel, inducing_variable, *_ = self._rebuild(list(values))
        return prior_factor(kernel, inducing_variable, self._jitter)

    def step(
        self, point: Point, Lz: tf.Tensor, batch: tuple[tf.Tensor, ...], rho: tf.Tensor
    ) -> Point:
        """:return: the point after a natural-gradient step of size rho."""
        likelihood, rows = self._project(point.values, Lz, batch)
        sums = accumulate(likelihood, rows, batch_marginals(rows.features, point.natural))
        natural = blend(point.natural, self._scale * sums.h, self._scale * sums.P, rho)
        return point._replace(natural=natural)

    def learn(self, point: Point, batch: tuple[tf.Tensor, ...]) -> tuple[Point, tf.Tensor]:
        """:return: the point after a step of Adam, and Lz there."""
        # TFP's bijectors remember what they made of a tensor, which no tape would see: copies.
        mine = [tf.identity(value) for value in self._plan.mine(point.values)]
        q = solve(point.natural)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(mine)
            bound = self._expectation(self._plan.merge(point.values, mine), q, batch)
            bound += self._plan.log_prior(mine)
        gradient = tape.gradient(bound, mine, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        mine, adam = point.adam.move(mine, gradient, self._adam_rate)
        values = self._plan.merge(point.values, mine)
        return Point(point.natural, values, adam), self.factor(values)

    def _expectation(
        self, values: tuple[tf.Tensor, ...], q: Gaussian, batch: tuple[tf.Tensor, ...]
    ) -> tf.Tensor:
        """:return: the part of the bound that depends on the hyperparameters."""
        likelihood, rows = self._project(values, self.factor(values), batch)
        return self._scale * localise(likelihood, rows, marginals(rows.features, q.R, q.c))[-1]

    def _project(
        self, values: tuple[tf.Tensor, ...], Lz: tf.Tensor, batch: tuple[tf.Tensor, ...]
    ) -> tuple[Any, Rows]:
        likelihood, kernel, inducing_variable, mean_function, _ = self._rebuild(list(values))
        features = project(kernel, inducing_variable, mean_function, batch[0], Lz)
        X, Y, weight = batch
        return likelihood, Rows(X, Y, weight, *features)
