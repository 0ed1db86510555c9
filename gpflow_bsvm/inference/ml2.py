"""Type-II maximum likelihood on minibatches: q and the hyperparameters in turn, in one loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..checks import check_whole
from ..data.batch import Batch, take
from ..data.minibatches import Block
from ..data.sources import Source
from ..engine.contracts import Model, jitter_of
from ..engine.hyperparameters import Hyperparameters
from ..engine.m_step import compiled_expectation
from ..engine.natural import Natural, compiled_solve
from .algorithm import Run, Step
from .minibatches import MinibatchAlgorithm, MinibatchRun, State
from .ml2_loop import Adam, Constants, compiled_learn
from .schedules import RobbinsMonro, Schedule, check_schedule, rates


@dataclass(frozen=True)
class ML2(MinibatchAlgorithm):
    """
    Type-II maximum likelihood (ML-II) on minibatches (Wenzel et al. 2017, section 4.3): learns the
    trainable parameters of kernel, inducing variable, mean function and likelihood together with q,
    by a step of Adam (Kingma & Ba 2015) after every `every` natural-gradient steps, in one compiled
    loop. Where all the data can be looked at, `VEM` needs neither rates nor patience.

    In a step of Adam the whitened q(s), u = Lz s, stays where it is. The paper takes 10 steps on q
    for one on the kernel; every other step got to a given bound in a quarter of the steps on
    waveform, banana and splice.

    Records hold the hyperparameters; their `elbo` is an estimate, with the log prior density.
    Beside the errors of `run`, there is one if nothing but q is trainable, a start value or the
    density of its prior is not finite, or the kernel has state that is no `gpflow.Parameter`, and a
    FloatingPointError if not even the smallest step of Adam leaves a finite q.

    :ivar batch_size: and `seed`, `record_every`: as in `SVI`.
    :ivar max_steps: natural-gradient steps in all.
    :ivar learning_rate: of these: a function of the step number from 0, or a number in (0, 1]. It
        need not go to 0: hyperparameters move on.
    :ivar every: natural-gradient steps from one step of Adam to the next.
    :ivar adam_rate: of Adam, in GPflow's unconstrained parameters; halved after a block of steps
        that ends in no finite bound, which is undone.
    """

    learns = True

    batch_size: int = 100
    max_steps: int = 5000
    learning_rate: Schedule | float = field(default_factory=RobbinsMonro)
    every: int = 2
    adam_rate: float = 0.05
    seed: int = 0
    record_every: int = 250

    def __post_init__(self) -> None:
        names = ("batch_size", "max_steps", "every", "record_every")
        check_whole(1, **{name: getattr(self, name) for name in names})
        check_schedule(self.learning_rate)
        if not self.adam_rate > 0:
            raise ValueError(f"adam_rate must be positive, got {self.adam_rate}")

    def _begin(self, model: Model, source: Source) -> Run:
        return _Learning(self, model, source)


class Memory(NamedTuple):
    """What `ML2` remembers beside q."""

    values: tuple[Any, ...]  #: unconstrained, of what is learned
    adam: Adam


class _Learning(MinibatchRun):
    def __init__(self, options: ML2, model: Model, source: Source) -> None:
        self._options, self._hyper = options, Hyperparameters(model)
        self._hyper.check_start()
        if not self._hyper.named:
            raise ValueError("nothing but q is trainable: use SVI")
        if not self._hyper.in_parameters:
            raise ValueError(
                "kernel, mean function and likelihood must hold their state in gpflow.Parameters: "
                "nothing else can be moved in a compiled loop"
            )
        modules = self._hyper.modules
        self._learn = compiled_learn.bind(*modules, self._hyper.plan)
        self._expectation = compiled_expectation.bind(*modules)
        values = self._hyper.state()
        super().__init__(options, model, source, Memory(values, Adam.start(values)))

    def _steps(self, state: State, block: Block, scale: float) -> tuple[Natural, Any, float]:
        options, number, dtype = self._options, len(block.index), state.natural.h.dtype
        moves = (state.steps + 1 + np.arange(number)) % options.every == 0
        given = rates(options.learning_rate, state.steps, number)
        rate = state.damping * options.adam_rate
        loop = self._learn(
            state.natural,
            state.memory.adam,
            Constants(tf.constant(scale, dtype), jitter_of(self._model), tf.constant(rate, dtype)),
            tf.constant(given, dtype),
            tf.constant(moves),
            tf.constant(block.index),
            block.rows,
        )
        values = tuple(self._hyper.plan.trainable(loop.values))
        return loop.natural, Memory(values, loop.adam), given[-1]

    def _elbo(self, state: State, rows: Batch, index: AnyNDArray) -> float:
        """The ELBO, its expectation estimated from the latest rows, with the log prior density."""
        self._hyper.assign(state.memory.values)
        q = compiled_solve(state.natural)
        expectation = self._expectation(q, take(rows, index), jitter_of(self._model))
        log_prior = self._hyper.log_prior()
        return float(expectation * (self._num_data / len(index)) - q.kl + log_prior)

    def _record(self, state: State, elbo: float, rate: float) -> Step:
        return Step(state.steps, elbo, rate, self._hyper.values())

    def restore(self) -> None:
        self._hyper.assign(self.state.memory.values)
        super().restore()
