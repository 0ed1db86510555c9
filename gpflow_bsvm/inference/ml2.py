"""Type-II maximum likelihood on minibatches: steps of q and hyperparameters in one loop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray
from gpflow.keras import tf_keras

from ..checks import check_whole, is_number
from ..data.batch import Batch, take
from ..data.sampling import BatchGroup
from ..data.sources import Source
from ..engine.contracts import Model, as_variables, jitter_of
from ..engine.hyperparameters import Hyperparameters
from ..engine.natural import Gaussian, Natural, blend
from ..engine.projection import Floats, Projected, project_batch
from ..engine.shared_graph import concrete, shapes_of
from ..engine.statistics import (
    Marginals,
    accumulate,
    batch_marginals,
    local_for_gradient,
    sum_sites,
)
from .minibatches import SVI, MinibatchAlgorithm, MinibatchRun, MinibatchState, rates
from .run import Run, Step
from .vem import compiled_expectation


@dataclass(frozen=True)
class ML2(MinibatchAlgorithm):
    """
    Type-II maximum likelihood (ML-II) on minibatches (Wenzel et al. 2017, section 4.3): learns the
    trainable parameters of kernel, inducing variable, mean function and likelihood together with q.
    Every `every`-th natural-gradient step is accompanied by a step of a Keras optimizer on the same
    rows, in one compiled loop. The parameters include the weights of a
    `gpflow_bsvm.deep.DeepKernel` (Wistuba & Rawat 2018, section 3.4); its regularization losses are
    subtracted from the bound. If passes over all the data are affordable, `VEM` is quicker.

    An optimizer step holds the whitened q(s), u = Lz s, fixed, while the paper's gradient (A.3)
    holds q(u) fixed. The paper takes 10 steps on q per step on the kernel; with 2, a quarter of the
    steps led to the same bound on the data sets waveform, banana and splice.

    Records contain the hyperparameters except network weights; a record's `elbo` is an estimate
    that includes the log prior density. If only q is trainable, `ML2` works as `SVI`. Besides the
    errors of `run`, it raises ValueError if an initial value or its prior density is not finite,
    and FloatingPointError if even the smallest steps give no finite q.

    :ivar batch_size: as in `SVI`; so are `seed` and `record_every`.
    :ivar max_steps: number of natural-gradient steps.
    :ivar learning_rate: rate of these steps, a number in (0, 1] or a function of the step number
        (from 0). The rate need not go to 0, because the hyperparameters keep changing.
    :ivar every: number of natural-gradient steps per optimizer step.
    :ivar optimizer: optimizer of all hyperparameters except network weights, in GPflow's
        unconstrained parameters: a Keras optimizer, which is copied, or the rate of Adam (Kingma &
        Ba 2015). A group of steps without a finite bound is undone, and later steps are halved.
    :ivar network_optimizer: the same for network weights.
    :ivar warm_up: number of initial steps on q alone, which protect a trained network.
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
            alone = SVI(
                self.batch_size, self.max_steps, self.learning_rate, self.seed, self.record_every
            )
            return alone._begin(model, source)
        return _Learning(self, model, source)


def check_optimizer(**options: Any) -> None:
    """:raise ValueError: unless each is a positive number or a Keras optimizer without averages."""
    for name, value in options.items():
        methods = ("apply_gradients", "build", "get_config")  # legacy optimizers lack `build`
        optimizer = all(hasattr(value, method) for method in methods)
        rate = is_number(value) and 0 < value < math.inf
        if isinstance(value, type) or not (optimizer or rate):
            raise ValueError(
                f"{name} must be a positive number, the rate of Adam, or a Keras optimizer such "
                f"as tf_keras.optimizers.Adam(1e-3), got {value!r}"
            )
        if getattr(value, "use_ema", False):
            raise ValueError(f"{name} has use_ema=True, but a fit ignores averages: leave it out")


class Given(NamedTuple):
    """Inputs of a group's steps t = 0..T-1."""

    scale: tf.Tensor  #: [], num_data / B
    jitter: tf.Tensor  #: [], jitter of Kuu
    damping: tf.Tensor  #: [], factor of each optimizer step
    rates: tf.Tensor  #: [T], rates of the natural-gradient steps
    moves: tf.Tensor  #: [T], whether to add an optimizer step
    index: tf.Tensor  #: [T, B], row indices
    rows: Batch


class _Learning(MinibatchRun):
    """
    The `memory` of its state holds the learned parameters, and the state of the optimizers. Graphs
    update these variables in place, as Keras optimizers and stateful layers require.
    """

    def __init__(self, options: ML2, model: Model, source: Source) -> None:
        self._hyper = Hyperparameters(model)
        self._hyper.check_start()
        self._expectation = compiled_expectation.bind(model.likelihood, model.prior)
        self._graphs: dict[Any, Any] = {}
        self._optimizers: list[tuple[Any, list[Any]]] = []
        weights = [v for network in self._hyper.networks for v in network.all_weights()]
        ids = {id(v) for v in weights}
        self._variables = weights
        self._learn_by(options.optimizer, [v for v in self._hyper.variables if id(v) not in ids])
        self._learn_by(
            options.network_optimizer, [v for v in self._hyper.variables if id(v) in ids]
        )
        super().__init__(options, model, source, tuple(v.numpy() for v in self._variables))

    def _learn_by(self, option: Any, own: list[Any]) -> None:
        if not own:
            return
        if hasattr(option, "get_config"):  # a Keras optimizer: copied
            optimizer = type(option).from_config(option.get_config())
        else:
            optimizer = tf_keras.optimizers.Adam(float(option), epsilon=1e-8)
        optimizer.build(own)
        self._optimizers.append((optimizer, own))
        variables = [*self._variables, *own, *as_variables(optimizer.variables)]
        self._variables = list({id(v): v for v in variables}.values())

    def _steps(
        self, state: MinibatchState, group: BatchGroup, scale: float
    ) -> tuple[Natural, Any, float]:
        options = self._options
        number = len(group.index)
        dtype = state.natural.h.dtype
        counts = state.steps + 1 + np.arange(number)
        moves = (counts % options.every == 0) & (counts > options.warm_up)
        steps = rates(options.learning_rate, state.steps, number)
        given = Given(
            tf.constant(scale, dtype),
            jitter_of(self._model),
            tf.constant(state.damping, dtype),
            tf.constant(steps, dtype),
            tf.constant(moves),
            tf.constant(group.index),
            group.rows,
        )
        natural = self._after(state.natural, given)
        return natural, tuple(v.numpy() for v in self._variables), steps[-1]

    def _expected(self, q: Gaussian, rows: Batch, index: AnyNDArray) -> tf.Tensor:
        how = Floats(jitter_of(self._model), tf.ones([], q.R.dtype))
        return self._expectation(q, how, take(rows, index))

    def _elbo(self, state: MinibatchState, group: BatchGroup) -> float:
        """As in the base class, plus the log prior density."""
        return super()._elbo(state, group) + float(self._hyper.log_prior_density())

    def _record(self, state: MinibatchState, elbo: float, rate: float) -> Step:
        return Step(state.steps, elbo, rate, self._hyper.values())

    def restore(self) -> None:
        for variable, value in zip(self._variables, self.state.memory):
            variable.assign(value)
        super().restore()

    @check_shapes(
        "natural.h: [L, M]", "given.rates: [T]", "given.index: [T, B]", "return.h: [L, M]"
    )
    def _after(self, natural: Natural, given: Given) -> Natural:
        """
        For t = 0..T-1, take a natural-gradient step on the minibatch of rows index[t], and, if
        moves[t], an optimizer step with the gradients at the same q and rows.

        :return: q after the steps.
        """
        # The graph serves one fit; it is faster with a static M.
        exact = [tf.TensorSpec(part.shape, part.dtype) for part in natural]
        shapes = shapes_of(given, given._fields)
        flat = exact + [tf.TensorSpec(shape, dtype) for shape, dtype in shapes]
        key = tuple(flat)
        if key not in self._graphs:
            specs = tf.nest.pack_sequence_as((natural, given), flat)
            networks = self._hyper.networks
            try:
                for network in networks:
                    network.training = True
                self._graphs[key] = concrete(self._loop, specs)
            finally:
                for network in networks:
                    network.training = False
        h, P = tf.nest.flatten(self._graphs[key](natural, given))
        return Natural(h, P)

    def _loop(self, natural: Natural, given: Given) -> Natural:
        def body(t: tf.Tensor, natural: Natural) -> Any:
            batch = take(given.rows, given.index[t])
            rate = given.rates[t]
            natural = tf.cond(
                given.moves[t],
                partial(self._learn, natural, given, batch, rate),
                partial(self._step, natural, given, batch, rate),
            )
            return t + 1, natural

        num_steps = tf.shape(given.index)[0]
        _, natural = tf.while_loop(
            lambda t, *_: t < num_steps, body, (0, natural), parallel_iterations=1
        )
        return natural

    def _seen(self, natural: Natural, given: Given, batch: Batch) -> tuple[Projected, Marginals]:
        """:return: the projected rows, and their marginals of Phi s."""
        rows = project_batch(self._hyper.prior, batch, Floats(given.jitter))
        few = bool(batch.X.shape[0] < natural.h.shape[1])  # both are static
        return rows, batch_marginals(rows.features.phi, natural, few)

    def _step(self, natural: Natural, given: Given, batch: Batch, rate: tf.Tensor) -> Natural:
        """:return: q after a natural-gradient step of size `rate`."""
        rows, f = self._seen(natural, given, batch)
        sums = accumulate(self._hyper.likelihood, rows, f).sums
        return blend(natural, sums.times(given.scale), rate)

    def _learn(self, natural: Natural, given: Given, batch: Batch, rate: tf.Tensor) -> Natural:
        """As in `_step`, plus an optimizer step; rows are projected once."""
        likelihood = self._hyper.likelihood
        mine = self._hyper.variables
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(mine)
            rows, f = self._seen(natural, given, batch)
            local = local_for_gradient(likelihood)(likelihood, rows, f)
            loss = -given.scale * tf.reduce_sum(local.expectation)
            loss -= sum(p.log_prior_density() for p in self._hyper.log_prior.parameters)
            loss += sum(part for network in self._hyper.networks for part in network.losses())
        gradients = tape.gradient(loss, mine, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        self._move({id(v): gradient for v, gradient in zip(mine, gradients)}, given.damping)
        return blend(natural, sum_sites(rows, local.sites).times(given.scale), rate)

    def _move(self, gradients: dict[int, tf.Tensor], damping: tf.Tensor) -> None:
        for optimizer, own in self._optimizers:
            before = [tf.identity(variable) for variable in own]
            optimizer.apply_gradients([(gradients[id(v)], v) for v in own])
            for variable, old in zip(own, before):
                step = tf.cast(damping, old.dtype) * (variable - old)
                variable.assign(tf.where(damping < 1, old + step, variable))
