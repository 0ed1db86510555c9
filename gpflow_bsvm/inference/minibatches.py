"""Fits on minibatches: learning rates, groups of steps that are undone if they fail, and `SVI`."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from ..checks import check_elbo, check_number, check_rate, check_whole
from ..data.sampling import BatchGroup, batch_groups
from ..data.sources import Source
from ..engine.contracts import CHUNK_ENTRIES, Model, shares_shifts, warn_of_fewer_rows
from ..engine.natural import (
    Gaussian,
    Natural,
    blend,
    compiled_natural_step,
    compiled_solve,
    without_point,
)
from ..engine.projected_data import ProjectedData, single_precision
from ..engine.projection import Projected
from ..engine.shared_graph import Compiled
from ..engine.statistics import accumulate, batch_marginals, compiled_accumulate
from .algorithm import Algorithm
from .run import Run, Step

#: Maps the step number, from 0, to a learning rate in (0, 1]. If a schedule has `memory` and
#: `rate`, like `Adaptive`, `SVI` computes the rate in its loop.
Schedule = Callable[[int], float]
LearningRate = Schedule | float | Literal["adaptive"]

#: The least number of rows for an estimate of the ELBO.
_ELBO_ROWS = 500
#: Products run in single precision from this many entries (B times L M) on, and ...
_BIG_BATCH = 1e5
#: ... up to this many data: N times the rounding must stay small beside the prior's precision.
_SINGLE_ROWS = 1e6
#: A fit fails after this many halvings of its rate.
_MOST_HALVINGS = 20


@dataclass(frozen=True)
class RobbinsMonro:
    """
    rho_t = (t + delay)^(-forgetting). The sum of rates diverges and the sum of their squares
    converges, as required for convergence (Hoffman et al. 2013, eq. 26).

    :ivar delay: at least 1; a larger value makes the first steps smaller. (Each minibatch is scaled
        to all the data: a step of size near 1 would replace earlier information with noise.)
    :ivar forgetting: in (0.5, 1]; the rate of forgetting old information.
    """

    delay: float = 100.0
    forgetting: float = 0.7

    def __post_init__(self) -> None:
        check_number(1, delay=self.delay)
        check_rate(self.forgetting, "forgetting", 0.5)

    def __call__(self, step: int) -> float:
        """:return: rho of the step, counted from 0."""
        return float((step + self.delay) ** -self.forgetting)


@dataclass(frozen=True)
class Adaptive:
    """
    The rate that minimizes the expected distance to the full-data step (Ranganath et al. 2013, eq.
    9; Wenzel et al. 2017, section 4.2), computed from the residual g of the natural parameters,
    target minus current value:

        gbar <- (1 - 1/tau) gbar + g / tau,       sbar <- (1 - 1/tau) sbar + |g|^2 / tau,
        rho = |gbar|^2 / sbar,                    tau <- tau (1 - rho) + 1.

    The rate lies in (0, 1]: near 1 while all minibatches agree on a direction, small when only
    noise is left. It only works in `SVI`, which evaluates it in its compiled loop; its short form
    is learning_rate="adaptive". Unlike with `RobbinsMonro`, the sum of rates may converge.

    :ivar warm_up: number of initial steps in which gbar and sbar are plain means.
    :ivar first: rate of these initial steps, in (0, 1].
    """

    warm_up: int = 20
    first: float = 0.03

    def __post_init__(self) -> None:
        check_whole(1, warm_up=self.warm_up)
        check_rate(self.first, "first")

    def __call__(self, step: int) -> float:
        """:return: `first` for any step; `SVI` uses `rate` instead."""
        return self.first

    def memory(self, natural: Natural) -> tuple[Any, ...]:
        """:return: gbar (as h and P), sbar, tau and the number of steps, before the first step."""
        zero = tf.zeros([], natural.h.dtype)
        return Natural(tf.zeros_like(natural.h), tf.zeros_like(natural.P)), zero, zero + 1, zero

    @check_shapes("given: []", "residual.h: [L, M]", "return[0]: []")
    def rate(
        self, given: tf.Tensor, residual: Natural, memory: tuple[Any, ...]
    ) -> tuple[tf.Tensor, tuple[Any, ...]]:
        """:return: rho, and the memory after the step; `given` is `first`, and `residual` is g."""
        mean, mean_square, tau, count = memory
        square = sum(tf.reduce_sum(tf.square(part)) for part in residual)
        mean = Natural._make(old + (new - old) / tau for old, new in zip(mean, residual))
        mean_square += (square - mean_square) / tau
        signal = sum(tf.reduce_sum(tf.square(part)) for part in mean)
        warm = count < self.warm_up
        rho = tf.where(warm, given, tf.minimum(signal / mean_square, 1))
        tau = tf.where(warm, tau + 1, tau * (1 - rho) + 1)
        return rho, (mean, mean_square, tau, count + 1)


def check_schedule(learning_rate: Any, adaptive: bool = False) -> None:
    """
    :param adaptive: whether `Adaptive` is allowed.
    :raise ValueError: unless it is a schedule, or a number in (0, 1].
    """
    if isinstance(learning_rate, type):
        name = learning_rate.__name__
        raise ValueError(f"learning_rate must be a schedule, got the class {name}: use {name}()")
    if hasattr(learning_rate, "memory") and not adaptive:
        raise ValueError(
            f"{type(learning_rate).__name__} is a learning rate for SVI only; "
            "use RobbinsMonro() or a number in (0, 1] here"
        )
    if isinstance(learning_rate, numbers.Real):
        check_rate(learning_rate)
    elif not callable(learning_rate):
        named = ', "adaptive"' if adaptive else ""
        raise ValueError(
            f"learning_rate must be a number in (0, 1], a schedule such as RobbinsMonro(){named}, "
            f"or a function of the step number, got {learning_rate!r}"
        )


def rates(schedule: LearningRate, step: int, number: int) -> list[float]:
    """
    :return: the rates of `number` steps, from `step` on.
    :raise ValueError: for a rate outside (0, 1].
    """
    if not callable(schedule):
        return [float(schedule)] * number
    values = [float(schedule(step + t)) for t in range(number)]
    for t, rate in enumerate(values):
        if not 0 < rate <= 1:
            raise ValueError(f"the schedule gave {rate} at step {step + t}, not a rate in (0, 1]")
    return values


class MinibatchState(NamedTuple):
    """The state of a fit on minibatches."""

    natural: Natural
    memory: Any  #: the algorithm's tensors in any structure
    steps: int = 0
    position: int = 0  #: position in the order of the rows
    damping: float = 1.0  #: factor of the rate, halved after a group without a finite bound


@dataclass(frozen=True)
class MinibatchAlgorithm(Algorithm):
    """Options and data of a fit on minibatches."""

    batch_size: int = 100
    max_steps: int = 5000
    learning_rate: LearningRate = field(default_factory=RobbinsMonro)
    seed: int = 0
    record_every: int = 250
    weighs = False  # steps scale minibatches themselves
    #: Whether the algorithm's loop evaluates `Adaptive`.
    adapts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_whole(1, batch_size=self.batch_size, max_steps=self.max_steps)
        check_whole(1, record_every=self.record_every)
        check_whole(0, seed=self.seed)
        check_schedule(self.learning_rate, adaptive=self.adapts)


class MinibatchRun(Run[MinibatchState, Step]):
    """A run in groups of steps. A group without a finite ELBO is undone, and the rate is halved."""

    settles = False
    by_sites = True

    state: MinibatchState
    #: The number of rows in a group, limited by memory.
    most_rows: float = math.inf

    def __init__(
        self, options: MinibatchAlgorithm, model: Model, data: Source, memory: Any
    ) -> None:
        """:param data: a source, possibly projected by the model."""
        source = data.source if isinstance(data, ProjectedData) else data
        if not source.counted and model.num_data is None:
            raise ValueError(
                "the number of rows is unknown, and the data may be endless: the model needs "
                "num_data, the number of all rows"
            )
        super().__init__(options, model)
        self._source = source
        self._num_data = float(source.num_rows if model.num_data is None else model.num_data)
        self._share = shares_shifts(model)
        self.state = MinibatchState(without_point(model.natural()), memory)
        most = min(options.record_every, options.max_steps)
        self._groups_from = partial(
            batch_groups, data, options.batch_size, most, options.seed, most_rows=self.most_rows
        )
        self._groups = self._groups_from(0)

    def resume(self, state: MinibatchState) -> None:
        """See `Run`; also continues the order of the rows."""
        super().resume(state)
        self._groups = self._groups_from(state.position)

    @abstractmethod
    def _steps(
        self, state: MinibatchState, group: BatchGroup, scale: float
    ) -> tuple[Natural, Any, float]:
        """:return: q and memory after the group's steps, and the last rate; `scale` is N / B."""

    @abstractmethod
    def _expected(self, q: Gaussian, rows: Any, index: AnyNDArray) -> tf.Tensor:
        """:return: [], sum of E_q log p(y_n | f_n) over the rows at these indices."""

    def _elbo(self, state: MinibatchState, group: BatchGroup) -> float:
        """:return: the ELBO; its expectation is estimated from the last (about 500) rows."""
        q = compiled_solve(state.natural)
        batches = -(-_ELBO_ROWS // group.index.shape[1])
        index = group.index[-batches:].reshape(-1)
        expectation = self._expected(q, group.rows, index)
        return float(expectation * (self._num_data / len(index)) - q.kl)

    def _record(self, state: MinibatchState, elbo: float, rate: float) -> Step:
        return Step(state.steps, elbo, rate)

    def advance(self) -> Step:
        """Run a group of steps."""
        state = self.state
        while True:
            group = next(self._groups).first(self.max_steps - state.steps, state.position)
            after, elbo, rate = self._try(state, group)
            if after is not None:
                if not state.steps:  # a dataset's batches are known from the first group on
                    warn_of_fewer_rows(self._model, self._source.least_rows)
                self.state = after
                return self._record(after, elbo, rate)
            self.restore()
            check_elbo(self._elbo(state, group), "at the start")
            state = state._replace(damping=state.damping / 2, position=group.position)
            if state.damping < 0.5**_MOST_HALVINGS:
                raise FloatingPointError(
                    f"q is not finite after several steps, even at {state.damping:.1e} times the "
                    "rate: standardize X, start from moderate kernel values, or reduce the rates "
                    "of the optimizers"
                )

    def _try(
        self, state: MinibatchState, group: BatchGroup
    ) -> tuple[MinibatchState | None, float, float]:
        """:return: the state after a group and its estimated ELBO; None if not finite."""
        num_steps, batch_size = group.index.shape
        try:
            natural, memory, rate = self._steps(state, group, self._num_data / batch_size)
            if self._share:  # a step of size 0 only centers means
                natural, _ = compiled_natural_step(natural, natural, 0 * self._share, self._share)
            steps = state.steps + num_steps
            after = MinibatchState(natural, memory, steps, group.position, state.damping)
            elbo = self._elbo(after, group)
        except tf.errors.InvalidArgumentError:  # a matrix without a Cholesky factor
            return None, math.nan, math.nan
        return after if math.isfinite(elbo) else None, elbo, rate

    def close(self) -> None:
        self._groups.close()


@dataclass(frozen=True)
class SVI(MinibatchAlgorithm):
    """
    Stochastic variational inference (Wenzel et al. 2017, Algorithm 1) for q, at fixed
    hyperparameters. Steps run in a compiled loop, `record_every` at a time. Every learning rate in
    (0, 1] keeps the posterior positive definite. With Newton-like sites, as in
    `Hinge(bound="exact")`, steps at large constant rates (above about 0.3) can oscillate. For a
    `tf.data.Dataset`, which may repeat endlessly, the model needs `num_data`. For large batches (at
    least 1e5 feature entries, and no fewer rows than inducing points) and at most a million rows in
    all, products are in single precision: minibatch noise far exceeds rounding errors.

    :ivar batch_size: rows of a minibatch (a `tf.data.Dataset` has its own batch size, and a smaller
        last batch is filled up with rows of the next epoch).
    :ivar max_steps: number of steps.
    :ivar learning_rate: a schedule of `gpflow_bsvm.inference`, any function of the step number
        (from 0), a number, or "adaptive", for `Adaptive()`.
    :ivar seed: seed for the order of the rows (for arrays).
    :ivar record_every: steps between records (history, callback, monitor, progress bar); their
        `elbo` is an estimate from the latest rows. Unless data are arrays, the X of this many
        minibatches is in memory at once.
    """

    adapts = True

    def __post_init__(self) -> None:
        if isinstance(self.learning_rate, str) and self.learning_rate == "adaptive":
            object.__setattr__(self, "learning_rate", Adaptive())
        super().__post_init__()

    def _begin(self, model: Model, source: Source) -> Run[Any, Any]:
        return _Steps(self, model, ProjectedData(model, source))


class _Steps(MinibatchRun):
    def __init__(self, options: SVI, model: Model, data: ProjectedData) -> None:
        rate = options.learning_rate
        adaptive: Any = rate if hasattr(rate, "memory") else None
        num_inducing = model.q_shape[1]
        few = options.batch_size < num_inducing
        self._accumulate = compiled_accumulate.bind(model.likelihood)
        self._loop = compiled_steps.bind(model.likelihood, adaptive, few)
        self.most_rows = 2 * CHUNK_ENTRIES / num_inducing
        memory = adaptive.memory(model.natural()) if adaptive else ()
        super().__init__(options, model, data, memory)

    def _steps(
        self, state: MinibatchState, group: BatchGroup, scale: float
    ) -> tuple[Natural, Any, float]:
        dtype = state.natural.h.dtype
        num_steps, batch_size = group.index.shape
        given = rates(self._options.learning_rate, state.steps, num_steps)
        num_latents, M = self._model.q_shape
        big = batch_size >= M and batch_size * num_latents * M >= _BIG_BATCH
        rows = group.rows
        if big and self._num_data <= _SINGLE_ROWS:
            rows = rows.in_precision(single_precision())
        natural, rho, memory = self._loop(
            state.natural,
            tf.constant(scale, dtype),
            state.damping * tf.constant(given, dtype),
            tf.constant(group.index),
            state.memory,
            rows,
        )
        return natural, memory, float(rho)

    def _expected(self, q: Gaussian, rows: Projected, index: AnyNDArray) -> tf.Tensor:
        return self._accumulate(q, rows.take(index)).expectation


@Compiled
@check_shapes("natural.h: [L, M]", "rates: [T]", "index: [T, B]", "return[0].h: [L, M]")
def compiled_steps(
    likelihood: Likelihood,
    adaptive: Any,
    few: bool,
    natural: Natural,
    scale: tf.Tensor,
    rates: tf.Tensor,
    index: tf.Tensor,
    memory: tuple[tf.Tensor, ...],
    rows: Projected,
) -> tuple[Natural, tf.Tensor, tuple[tf.Tensor, ...]]:
    """
    Take natural-gradient steps on minibatches rows[index[t]], t = 0..T-1.

    :param adaptive: None, or a schedule that replaces `rates` [T] in the loop.
    :param few: see `batch_marginals`.
    :param scale: num_data / B, for an index [T, B].
    :return: the last state, the last rate, and the memory of `adaptive`.
    """

    def body(t: Any, old: Natural, rho: Any, memory: Any) -> Any:
        batch = rows.take(index[t])
        sums = accumulate(likelihood, batch, batch_marginals(batch.features.phi, old, few)).sums
        sums = sums.times(scale)
        rho = rates[t]
        if adaptive:
            target = blend(old, sums, tf.ones_like(scale))
            rho, memory = adaptive.rate(rho, Natural(target.h - old.h, target.P - old.P), memory)
        return t + 1, blend(old, sums, rho), rho, memory

    start = (0, natural, tf.zeros_like(scale), memory)
    num_steps = tf.shape(index)[0]
    _, *end = tf.while_loop(lambda t, *_: t < num_steps, body, start, parallel_iterations=1)
    return tuple(end)
