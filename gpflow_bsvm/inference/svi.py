"""Stochastic variational inference: natural gradients on minibatches, in a compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.likelihoods import Likelihood

from ..checks import check_least, check_model
from ..data.sources import Source, latest, source_of
from ..engine.natural import Natural, RunningMean, blend, compiled_centre, compiled_solve
from ..engine.natural_gradient import batch_marginals
from ..engine.projected_data import CHUNK_ENTRIES, EngineModel, View, shares_shifts
from ..engine.shared_graph import Compiled
from ..engine.statistics import Rows, accumulate, compiled_accumulate
from .history import Callback, History, Recorder
from .schedules import Adaptive, Constant, Given, RobbinsMonro, Schedule, rates

#: From this many entries (B times L M) on, products run in single precision, ...
_BIG_BATCH = 1e5
#: ... up to this many data: their rounding, times N, must stay small beside the prior's precision.
_SINGLE_ROWS = 1e6

PRODUCTS = ("float64", "float32")
_FIELDS = len(Rows._fields)


@dataclass(frozen=True)
class SVI:
    """
    Stochastic variational inference (Wenzel et al. 2017, Algorithm 1) for q, at fixed
    hyperparameters. Steps run in a compiled loop, `record_every` at a time. Every learning rate in
    (0, 1] leaves the posterior positive definite; with Newton-like sites, such as those of
    `Hinge(bound="exact")`, large constant ones (from some 0.3 on) can oscillate all the same.

    :ivar batch_size: rows of a minibatch (for arrays; a `tf.data.Dataset` brings its own batches).
    :ivar num_steps: steps in all.
    :ivar learning_rate: a schedule of `gpflow_bsvm.inference`, any function of the step number
        from 0, or a number.
    :ivar average: end with the mean of the natural parameters over the second half of the steps
        (Polyak & Juditsky 1992), which with a constant rate does what a decaying one does.
    :ivar seed: of the order of the rows (for arrays).
    :ivar record_every: steps between records (history, callback, monitor, progress bar).
    :ivar products: precision of the large products, "float64" or "float32"; all else is in
        GPflow's default float. None: "float32" for large batches (B times L M from 1e5 on, B at
        least M) of at most a million data, where the noise of the minibatch is far larger.
    """

    batch_size: int = 100
    num_steps: int = 5000
    learning_rate: Schedule | Adaptive | float = field(default_factory=RobbinsMonro)
    seed: int = 0
    record_every: int = 250
    products: str | None = None
    average: bool = False

    def __post_init__(self) -> None:
        check_least(
            1, batch_size=self.batch_size, num_steps=self.num_steps, record_every=self.record_every
        )
        if isinstance(self.learning_rate, (int, float)):
            Constant(self.learning_rate)
        if self.products is not None and self.products not in PRODUCTS:
            raise ValueError(f"products must be None or one of {PRODUCTS}, got {self.products!r}")

    def run(
        self,
        model: EngineModel,
        data: RegressionData | tf.data.Dataset | None = None,
        *,
        sample_weight: Any = None,
        callback: Callback | None = None,
        monitor: Callable[[int], Any] | None = None,
        progress: bool | None = None,
    ) -> History:
        """
        Fit q; the model's `q_mu` and `q_sqrt` are set at the end, also after an interrupt.

        :param data: X [N, D] and Y [N, P], or a batched `tf.data.Dataset` of (X, Y) or
            (X, Y, sample_weight), for which the model must know `num_data`; None: those that the
            model holds.
        :param sample_weight: [N], powers of the likelihood, with arrays; ones if None.
        :param callback: called at every record with the step and the history.
        :param monitor: a `gpflow.monitor.Monitor`, called at every record.
        :param progress: show a progress bar; None: on a terminal only.
        :raise ValueError: for bad data, or a dataset without `num_data`.
        """
        check_model(model)
        viewer = partial(View, model)
        source, num_data = source_of(model, data, sample_weight, self.batch_size, self.seed, viewer)
        with Recorder(model, self.num_steps, callback, monitor, progress) as recorder:
            self._descend(model, source, num_data, recorder)
        return recorder.history

    def _descend(
        self, model: EngineModel, source: Source, num_data: float, recorder: Recorder
    ) -> None:
        pace = self.learning_rate if isinstance(self.learning_rate, Adaptive) else Given()
        run_block = compiled_steps.bind(model.likelihood, pace, self.average)
        sums = compiled_accumulate.bind(model.likelihood)
        state = recorder.state = model.natural()
        memory, mean, step = pace.memory(*state), RunningMean(self.num_steps // 2), 0
        for rows, index in source.blocks(self._batches_per_block(state)):
            index = index[: self.num_steps - step]
            state, total, rho, memory = run_block(
                *state,
                num_data / index.shape[1] * tf.ones_like(state.h[0, 0]),
                tf.constant(rates(self.learning_rate, step, len(index)), state.h.dtype),
                tf.constant(index),
                *memory,
                *self._single(rows, state, index.shape[1], num_data),
            )
            if shares_shifts(model):
                state = compiled_centre(*state)
            step += len(index)
            shown = mean.add(step, len(index), total) if self.average else state
            elbo = _estimate_elbo(sums, shown, rows, index, num_data)
            recorder.record(step, elbo, float(rho), shown)
            if step >= self.num_steps:
                return

    def _batches_per_block(self, state: Natural) -> int:
        """As many batches as are recorded together, fewer if their features were too large."""
        entries = self.batch_size * state.h.shape[-1]
        return max(1, min(self.record_every, self.num_steps, 8 * CHUNK_ENTRIES // int(entries)))

    def _single(self, rows: Rows, state: Natural, batch_size: int, num_data: float) -> Rows:
        """:return: `rows` with features in the dtype of the products."""
        num_latents, M = state.h.shape
        big = batch_size >= M and batch_size * num_latents * M >= _BIG_BATCH
        dtype = tf.as_dtype(self.products or state.h.dtype)
        if self.products is None and big and num_data <= _SINGLE_ROWS:
            dtype = tf.float32
        return rows._replace(features=tf.cast(rows.features, dtype))


@Compiled
def compiled_steps(
    likelihood: Likelihood,
    pace: Adaptive | Given,
    average: bool,
    h: tf.Tensor,
    P: tf.Tensor,
    scale: tf.Tensor,
    rates: tf.Tensor,
    index: tf.Tensor,
    *memory_and_rows: tf.Tensor,
) -> tuple[Natural, Natural, tf.Tensor, tuple[tf.Tensor, ...]]:
    """
    Natural-gradient steps over minibatches rows[index[t]], t = 0..T-1.

    :param average: whether the states are summed up.
    :param scale: num_data / B.
    :param rates: [T], what `pace` is given.
    :param index: [T, B].
    :return: the last state, the sum of all (or nothing but zeros), the last rate, and the memory
        of `pace`.
    """
    memory, everything = memory_and_rows[:-_FIELDS], Rows(*memory_and_rows[-_FIELDS:])

    def body(t: Any, state: Any, total: Any, rho: Any, memory: Any) -> Any:
        batch, old = everything.take(index[t]), Natural(*state)
        sums = accumulate(likelihood, batch, batch_marginals(batch.features, old))
        target_h, target_P = scale * sums.h, scale * sums.P
        residual = blend(old, target_h, target_P, tf.ones_like(scale))
        residual = Natural(*map(tf.subtract, residual, old))
        rho, memory = pace.rate(rates[t], *residual, memory)
        new = blend(old, target_h, target_P, rho)
        total = Natural(*map(tf.add, total, new)) if average else total
        return t + 1, new, total, rho, memory

    zeros = Natural(tf.zeros_like(h), tf.zeros_like(P))
    start = (0, Natural(h, P), zeros, tf.zeros_like(scale), memory)
    num_steps = tf.shape(index)[0]
    _, state, total, rho, memory = tf.while_loop(
        lambda t, *_: t < num_steps, body, start, parallel_iterations=1
    )
    return state, total, rho, memory


def _estimate_elbo(
    sums: Callable[..., Any], state: Natural, rows: Rows, index: Any, num_data: float
) -> float:
    """The ELBO at `state` with the likelihood's part estimated from the latest rows."""
    seen = latest(index)
    q = compiled_solve(*state)
    expectation = sums(q.R, q.c, *rows.take(seen)).expectation
    return float(expectation * (num_data / len(seen)) - q.kl)
