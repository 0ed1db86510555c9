"""Type-II maximum likelihood on minibatches: q and the hyperparameters in turn, in one loop."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

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
from ..engine.natural import Gaussian, Natural
from ..engine.projection import Floats
from .algorithm import Run, Step
from .minibatches import MinibatchAlgorithm, MinibatchRun, State
from .ml2_loop import Constants, Given, Learner
from .schedules import check_optimizer, rates
from .svi import SVI


@dataclass(frozen=True)
class ML2(MinibatchAlgorithm):
    """
    Type-II maximum likelihood (ML-II) on minibatches (Wenzel et al. 2017, section 4.3): learns the
    trainable parameters of kernel, inducing variable, mean function and likelihood together with q.
    Every `every`-th natural-gradient step is accompanied by a step of a Keras optimiser on the same
    rows, in one compiled loop. This includes the weights of a `gpflow_bsvm.deep.DeepKernel`
    (Wistuba & Rawat 2018, section 3.4), whose regularisation losses are subtracted from the bound.
    If passes over all the data are affordable, `VEM` needs neither rates nor patience.

    A step of the optimiser keeps the whitened q(s), u = Lz s, fixed, not q(u) as the paper's
    gradient (A.3). The paper takes 10 steps on q for each on the kernel; an optimiser step at every
    other step reached a given bound in a quarter of the steps on waveform, banana and splice.

    Records hold the hyperparameters except the weights of networks; their `elbo` is an estimate,
    with the log prior density. If only q is trainable, this is `SVI`, as `VEM` is then `CAVI`.
    Besides the errors of `run`: ValueError if an initial value or its prior density is not finite,
    FloatingPointError if even the smallest steps do not give a finite q.

    :ivar batch_size: and `seed`, `record_every`: as in `SVI`.
    :ivar max_steps: number of natural-gradient steps.
    :ivar learning_rate: of these: a function of the step number from 0, or a number in (0, 1]. It
        need not go to 0, because the hyperparameters keep changing.
    :ivar every: number of natural-gradient steps per optimiser step.
    :ivar optimizer: for all hyperparameters except the weights of networks, in GPflow's
        unconstrained parameters: a number, the rate of Adam (Kingma & Ba 2015), or any Keras
        optimiser, of which a fresh copy is used. A block of steps without a finite bound is undone,
        and later steps are halved.
    :ivar network_optimizer: the same for the weights of networks.
    :ivar warm_up: number of initial steps on q alone, so that a trained network is not changed by
        gradients of an unfitted q.
    """

    learns = True

    every: int = 2
    optimizer: Any = 0.05
    network_optimizer: Any = 1e-3
    warm_up: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, every=self.every)
        check_whole(0, warm_up=self.warm_up)
        check_optimizer(optimizer=self.optimizer, network_optimizer=self.network_optimizer)

    def _begin(self, model: Model, source: Source) -> Run:
        if not model.hyperparameters():
            shared = {part.name: getattr(self, part.name) for part in fields(SVI)}
            return SVI(**shared)._begin(model, source)
        return _Learning(self, model, source)


class _Learning(MinibatchRun):
    """Its memory: values of the learned parameters, and the state of the optimisers."""

    def __init__(self, options: ML2, model: Model, source: Source) -> None:
        self._options, self._hyper = options, Hyperparameters(model)
        self._hyper.check_start()
        self._learner = Learner(self._hyper, options.optimizer, options.network_optimizer)
        self._expectation = compiled_expectation.bind(*self._hyper.modules)
        super().__init__(options, model, source, self._learner.state())

    def _steps(self, state: State, block: Block, scale: float) -> tuple[Natural, Any, float]:
        options, number, dtype = self._options, len(block.index), state.natural.h.dtype
        numbers = state.steps + 1 + np.arange(number)
        moves = (numbers % options.every == 0) & (numbers > options.warm_up)
        given = rates(options.learning_rate, state.steps, number)
        scale, damping = tf.constant(scale, dtype), tf.constant(state.damping, dtype)
        natural = self._learner(
            state.natural,
            Constants(scale, jitter_of(self._model), damping),
            Given(
                tf.constant(given, dtype), tf.constant(moves), tf.constant(block.index), block.rows
            ),
        )
        return natural, self._learner.state(), given[-1]

    def _expected(self, q: Gaussian, rows: Batch, index: AnyNDArray) -> tf.Tensor:
        how = Floats(jitter_of(self._model), tf.ones([], q.R.dtype))
        return self._expectation(q, take(rows, index), how)

    def _elbo(self, state: State, block: Block) -> float:
        """As in the base class, plus the log prior density."""
        return super()._elbo(state, block) + float(self._hyper.log_prior_density())

    def _record(self, state: State, elbo: float, rate: float) -> Step:
        return Step(state.steps, elbo, rate, self._hyper.values())

    def restore(self) -> None:
        """See `Run`."""
        self._learner.assign(self.state.memory)
        super().restore()
