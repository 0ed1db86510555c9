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
from .minibatches import MinibatchAlgorithm, MinibatchRun, State
from .ml2_loop import Constants, Given, Learner
from .run import Run, Step
from .schedules import check_optimizer, rates
from .svi import SVI


@dataclass(frozen=True)
class ML2(MinibatchAlgorithm):
    """
    Type-II maximum likelihood (ML-II) on minibatches (Wenzel et al. 2017, section 4.3): learns the
    trainable parameters of kernel, inducing variable, mean function and likelihood together with q,
    by a step of an optimiser of Keras in every `every`-th natural-gradient step, on the same rows,
    in one compiled loop. The weights of a `gpflow_bsvm.deep.DeepKernel` are learned with them
    (Wistuba & Rawat 2018, section 3.4); what its layers' regularisers say is taken off the bound.
    Where all the data can be looked at, `VEM` needs neither rates nor patience.

    In a step of the optimiser the whitened q(s), u = Lz s, stays where it is, and not q(u) as in
    the paper's gradient (A.3). The paper takes 10 steps on q for one on the kernel; every other
    step got to a given bound in a quarter of the steps on waveform, banana and splice.

    Records hold the hyperparameters except the weights of networks; their `elbo` is an estimate,
    with the log prior density. Where nothing but q is trainable, `SVI` does the work, as `CAVI`
    does that of `VEM`. Beside the errors of `run`, there is one if a start value or the density of
    its prior is not finite, and a FloatingPointError if not even the smallest steps leave a finite
    q.

    :ivar batch_size: and `seed`, `record_every`: as in `SVI`.
    :ivar max_steps: natural-gradient steps in all.
    :ivar learning_rate: of these: a function of the step number from 0, or a number in (0, 1]. It
        need not go to 0: hyperparameters move on.
    :ivar every: natural-gradient steps from one step of the optimisers to the next.
    :ivar optimizer: of all but the weights of networks, in GPflow's unconstrained parameters: a
        number, the rate of Adam (Kingma & Ba 2015), or any optimiser of Keras, of which a fresh
        copy is used. Its steps are halved after a block of steps that ends in no finite bound,
        which is undone.
    :ivar network_optimizer: of the weights of networks, likewise.
    :ivar warm_up: so many steps at first are on q alone, so that a trained network is not moved by
        the gradients of a q that knows nothing yet.
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

    def _begin(self, model: Model, source: Source) -> Run[Any, Any]:
        if not model.hyperparameters():
            shared = {part.name: getattr(self, part.name) for part in fields(SVI)}
            return SVI(**shared)._begin(model, source)
        return _Learning(self, model, source)


class _Learning(MinibatchRun):
    """Its memory: the values of what moves, and of what the optimisers remember."""

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
        """With the log prior density."""
        return super()._elbo(state, block) + float(self._hyper.log_prior_density())

    def _record(self, state: State, elbo: float, rate: float) -> Step:
        return Step(state.steps, elbo, rate, self._hyper.values())

    def restore(self) -> None:
        """See `Run`."""
        self._learner.assign(self.state.memory)
        super().restore()
