"""Stochastic variational inference: natural gradients on minibatches, in a compiled loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from ..data.sampling import BatchGroup
from ..data.sources import Source
from ..engine.contracts import CHUNK_ENTRIES, Model
from ..engine.natural import Gaussian, Natural, blend
from ..engine.projected_data import ProjectedData, single_precision
from ..engine.projection import Projected
from ..engine.shared_graph import Compiled
from ..engine.statistics import accumulate, batch_marginals, compiled_accumulate
from .minibatches import Adaptive, MinibatchAlgorithm, MinibatchRun, MinibatchState, rates
from .run import Run

#: Products run in single precision from this many entries (B times L M) on, and ...
_BIG_BATCH = 1e5
#: ... up to this many data: N times the rounding must stay small beside the prior's precision.
_SINGLE_ROWS = 1e6


@dataclass(frozen=True)
class SVI(MinibatchAlgorithm):
    """
    Stochastic variational inference (Wenzel et al. 2017, Algorithm 1) for q, at fixed
    hyperparameters. Steps run in a compiled loop, `record_every` at a time. Every learning rate in
    (0, 1] keeps the posterior positive definite. With Newton-like sites, as in
    `Hinge(bound="exact")`, steps at large constant rates (above about 0.3) can oscillate. A
    `tf.data.Dataset` may repeat endlessly; the model then needs `num_data`. For large batches (at
    least 1e5 feature entries, and no fewer rows than inducing points) and at most a million rows in
    all, products are in single precision: minibatch noise far exceeds rounding errors.

    :ivar batch_size: rows of a minibatch (for arrays; a `tf.data.Dataset` has its own batch size,
        and a smaller last batch is filled up with rows of the next epoch).
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
        if self.learning_rate == "adaptive":
            object.__setattr__(self, "learning_rate", Adaptive())
        super().__post_init__()

    def _begin(self, model: Model, source: Source) -> Run[Any, Any]:
        return _Steps(self, model, ProjectedData(model, source))


class _Steps(MinibatchRun):
    def __init__(self, options: SVI, model: Model, data: ProjectedData) -> None:
        self._options = options
        rate = options.learning_rate
        adaptive: Any = rate if hasattr(rate, "memory") else None
        self._accumulate = compiled_accumulate.bind(model.likelihood)
        natural = model.natural()
        self._shape = natural.h.shape
        few = bool(options.batch_size < self._shape[1])
        self._loop = compiled_steps.bind(model.likelihood, adaptive, few)
        self.most_rows = 2 * CHUNK_ENTRIES / int(self._shape[1])
        super().__init__(options, model, data, adaptive.memory(natural) if adaptive else ())

    def _steps(
        self, state: MinibatchState, group: BatchGroup, scale: float
    ) -> tuple[Natural, Any, float]:
        dtype = state.natural.h.dtype
        num_steps, batch_size = group.index.shape
        given = rates(self._options.learning_rate, state.steps, num_steps)
        num_latents, M = self._shape
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
