"""Fits on minibatches: groups of compiled steps, undone if they fail."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf
from gpflow.base import AnyNDArray

from ..checks import check_elbo, check_whole
from ..data.sampling import BatchGroup, batch_groups
from ..data.sources import Source
from ..engine.contracts import Model, shares_shifts
from ..engine.natural import Gaussian, Natural, compiled_natural_step, compiled_solve, without_point
from ..engine.open import warn_of_fewer_rows
from .algorithm import Algorithm
from .run import Run, Step
from .schedules import LearningRate, RobbinsMonro, check_schedule

#: The least number of rows for an estimate of the ELBO.
_ELBO_ROWS = 500
#: A fit fails after this many halvings of its rate.
_MOST_HALVINGS = 20


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
    weighs = False  # steps scale a minibatch to all rows
    #: Whether its loop evaluates `Adaptive`.
    adapts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_whole(1, batch_size=self.batch_size, max_steps=self.max_steps)
        check_whole(1, record_every=self.record_every)
        check_schedule(self.learning_rate, adaptive=self.adapts)


class MinibatchRun(Run[MinibatchState, Step]):
    """A run in groups of steps. A group without a finite ELBO is undone, and the rate is halved."""

    settles = False
    by_sites = True

    state: MinibatchState
    #: The number of batches in a group, limited by memory.
    most_batches: float = math.inf

    def __init__(
        self, options: MinibatchAlgorithm, model: Model, data: Source, memory: Any
    ) -> None:
        """
        :param data: a source, possibly projected by the model.
        :param memory: the algorithm's initial memory.
        """
        if not data.counted and model.num_data is None:
            raise ValueError(
                "the number of rows is unknown, and the data may be endless: the model needs "
                "num_data, the number of all rows"
            )
        self._model = model
        self.max_steps = options.max_steps
        self._num_data = float(data.num_rows if model.num_data is None else model.num_data)
        if data.indexed:  # others may have to be counted
            warn_of_fewer_rows(model, data)
        self._share = shares_shifts(model)
        self.state = MinibatchState(without_point(model.natural()), memory)
        most = int(min(options.record_every, options.max_steps, self.most_batches))
        self._groups_from = partial(batch_groups, data, options.batch_size, most, options.seed)
        self._groups = self._groups_from(0)

    def resume(self, state: MinibatchState) -> None:
        """See `Run`; also continues the order of the rows."""
        super().resume(state)
        self._groups = self._groups_from(state.position)

    @abstractmethod
    def _steps(
        self, state: MinibatchState, group: BatchGroup, scale: float
    ) -> tuple[Natural, Any, float]:
        """
        :param scale: number of all rows divided by the batch size.
        :return: natural parameters and memory after the group's steps, and the last rate.
        """

    @abstractmethod
    def _expected(self, q: Gaussian, rows: Any, index: AnyNDArray) -> tf.Tensor:
        """:return: [], sum of E_q log p(y_n | f_n) over the rows at these indices."""

    def _elbo(self, state: MinibatchState, group: BatchGroup) -> float:
        """:return: the ELBO; its expectation is estimated from the last (some 500) rows."""
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
        for group in self._groups:
            group = group.first(self.max_steps - state.steps, state.position)
            after, elbo, rate = self._try(state, group)
            if after is not None:
                self.state = after
                return self._record(after, elbo, rate)
            self.restore()
            check_elbo(self._elbo(state, group), "at the start")
            state = state._replace(damping=state.damping / 2, position=group.position)
            if state.damping < 0.5**_MOST_HALVINGS:
                raise FloatingPointError(
                    f"no finite q after several steps, even at {state.damping:.1e} times the "
                    "rate: standardise X, start from moderate kernel values, or reduce the rates "
                    "of the optimisers"
                )
        raise AssertionError("groups have no end")

    def _try(
        self, state: MinibatchState, group: BatchGroup
    ) -> tuple[MinibatchState | None, float, float]:
        """:return: the state after a group and its estimated ELBO; None if not finite."""
        num_steps, batch_size = group.index.shape
        try:
            natural, memory, rate = self._steps(state, group, self._num_data / batch_size)
            if self._share:  # a step of size 0 centres
                natural, _ = compiled_natural_step(natural, natural, 0 * self._share, self._share)
            after = MinibatchState(
                natural, memory, state.steps + num_steps, group.position, state.damping
            )
            elbo = self._elbo(after, group)
        except tf.errors.InvalidArgumentError:  # a matrix without a Cholesky factor
            return None, math.nan, math.nan
        return after if math.isfinite(elbo) else None, elbo, rate

    def close(self) -> None:
        """See `Run`."""
        self._groups.close()

    def restore(self) -> None:
        """See `Run`."""
        if self.state.steps:
            self._model.assign_natural(self.state.natural)
