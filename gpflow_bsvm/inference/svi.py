"""Stochastic variational inference: natural gradients on minibatches, in a compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.likelihoods import Likelihood

from ..checks import check_data, check_model, check_weights, check_width
from ..compilation import Compiled
from ..schedules import Constant, RobbinsMonro, Schedule
from .batches import ArraySource, DatasetSource, Source
from .history import Callback, History, Recorder
from .solve import Natural, blend, compiled_centre, compiled_solve, solve
from .statistics import (
    Marginals,
    Rows,
    accumulate,
    compiled_accumulate,
    marginals,
    marginals_of_few,
)
from .view import CHUNK_ENTRIES, EngineModel, View, shares_shifts

#: The ELBO is estimated from this many of the latest rows.
_ELBO_ROWS = 500
#: From this many entries (B times L M) on, products run in single precision, ...
_BIG_BATCH = 1e5
#: ... up to this many data: their rounding, times N, must stay small beside the prior's precision.
_SINGLE_ROWS = 1e6

PRODUCTS = ("float64", "float32")


@dataclass(frozen=True)
class SVI:
    """
    Stochastic variational inference (Wenzel et al. 2017, Algorithm 1) for q, at fixed
    hyperparameters. Steps run in a compiled loop, `record_every` at a time. Every learning rate in
    (0, 1] leaves the posterior positive definite; with Newton-like sites, such as those of
    `Hinge(bound="exact")`, large constant ones (from some 0.3 on) can oscillate all the same.

    :ivar batch_size: rows of a minibatch (for arrays; a `tf.data.Dataset` brings its own batches).
    :ivar num_steps: steps in all.
    :ivar learning_rate: a schedule of `gpflow_bsvm.schedules`, any function of the step number
        from 0, or a number.
    :ivar seed: of the order of the rows (for arrays).
    :ivar record_every: steps between records (history, callback, monitor, progress bar).
    :ivar products: precision of the large products, "float64" or "float32"; all else is in
        GPflow's default float. None: "float32" for large batches (B times L M from 1e5 on, B at
        least M) of at most a million data, where the noise of the minibatch is far larger.
    """

    batch_size: int = 100
    num_steps: int = 5000
    learning_rate: Schedule | float = field(default_factory=RobbinsMonro)
    seed: int = 0
    record_every: int = 250
    products: str | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "num_steps", "record_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not callable(self.learning_rate):
            Constant(self.learning_rate)
        if self.products is not None and self.products not in PRODUCTS:
            raise ValueError(f"products must be None or one of {PRODUCTS}, got {self.products!r}")

    def run(
        self,
        model: EngineModel,
        data: RegressionData | tf.data.Dataset,
        *,
        sample_weight: Any = None,
        callback: Callback | None = None,
        monitor: Callable[[int], Any] | None = None,
        progress: bool | None = None,
    ) -> History:
        """
        Fit q; the model's `q_mu` and `q_sqrt` are set at the end, also after an interrupt.

        :param data: X [N, D] and Y [N, P], or a batched `tf.data.Dataset` of (X, Y) or
            (X, Y, sample_weight), for which the model must know `num_data`.
        :param sample_weight: [N], powers of the likelihood, with arrays; ones if None.
        :param callback: called at every record with the step and the history.
        :param monitor: a `gpflow.monitor.Monitor`, called at every record.
        :param progress: show a progress bar; None: on a terminal only.
        :raise ValueError: for bad data, or a dataset without `num_data`.
        """
        check_model(model)
        source, num_data = self._source(model, data, sample_weight)
        with Recorder(model, self.num_steps, callback, monitor, progress) as recorder:
            self._descend(model, source, num_data, recorder)
        return recorder.history

    def _source(self, model: EngineModel, data: Any, sample_weight: Any) -> tuple[Source, float]:
        if isinstance(data, tf.data.Dataset):
            if model.num_data is None:
                raise ValueError("for a tf.data.Dataset the model needs num_data, the rows in all")
            if sample_weight is not None:
                raise ValueError("with a tf.data.Dataset, weights are its third component")
            return DatasetSource(model, data), float(model.num_data)
        X, Y = check_data(model.likelihood, *data)
        check_width(model, X, Y)
        weight = check_weights(sample_weight, len(X))
        num_data = len(X) if model.num_data is None else float(model.num_data)
        return ArraySource(View(model, X, Y, weight), self.batch_size, self.seed), num_data

    def _descend(
        self, model: EngineModel, source: Source, num_data: float, recorder: Recorder
    ) -> None:
        run_block = compiled_steps.bind(model.likelihood)
        sums = compiled_accumulate.bind(model.likelihood)
        state = recorder.state = model.natural()
        dtype, step = state.h.dtype, 0
        for rows, index in source.blocks(self._batches_per_block(state)):
            index = index[: self.num_steps - step]
            rates = np.array([self._rate(step + t) for t in range(len(index))])
            scale = num_data / index.shape[1]
            features = tf.cast(rows.features, self._products(state, index.shape[1], num_data))
            state = Natural(
                *run_block(
                    *state,
                    tf.constant(scale, dtype),
                    tf.constant(rates, dtype),
                    tf.constant(index),
                    *rows._replace(features=features),
                )
            )
            if shares_shifts(model):
                state = compiled_centre(*state)
            step += len(index)
            elbo = _estimate_elbo(sums, state, rows, index, num_data)
            recorder.record(step, elbo, float(rates[-1]), state)
            if step >= self.num_steps:
                return

    def _batches_per_block(self, state: Natural) -> int:
        """As many batches as are recorded together, fewer if their features were too large."""
        entries = self.batch_size * state.h.shape[-1]
        return max(1, min(self.record_every, self.num_steps, 8 * CHUNK_ENTRIES // int(entries)))

    def _products(self, state: Natural, batch_size: int, num_data: float) -> tf.DType:
        num_latents, M = state.h.shape
        big = batch_size >= M and batch_size * num_latents * M >= _BIG_BATCH
        if self.products is None and big and num_data <= _SINGLE_ROWS:
            return tf.float32
        return tf.as_dtype(self.products or state.h.dtype)

    def _rate(self, step: int) -> float:
        if not callable(self.learning_rate):
            return self.learning_rate
        rate = self.learning_rate(step)
        if not 0 < rate <= 1:
            raise ValueError(f"the schedule gave {rate} at step {step}; expected (0, 1]")
        return rate


@Compiled
def compiled_steps(
    likelihood: Likelihood,
    h: tf.Tensor,
    P: tf.Tensor,
    scale: tf.Tensor,
    rates: tf.Tensor,
    index: tf.Tensor,
    *rows: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """
    Natural-gradient steps over minibatches rows[index[t]], t = 0..T-1.

    :param scale: num_data / B.
    :param rates: [T].
    :param index: [T, B].
    """
    everything = Rows(*rows)

    def body(t: tf.Tensor, h: tf.Tensor, P: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        batch = everything.take(index[t])
        old = Natural(h, P)
        sums = accumulate(likelihood, batch, _marginals(batch.features, old))
        new = blend(old, scale * sums.h, scale * sums.P, rates[t])
        return t + 1, new.h, new.P

    num_steps = tf.shape(index)[0]
    _, h, P = tf.while_loop(lambda t, *_: t < num_steps, body, (0, h, P), parallel_iterations=1)
    return h, P


def _marginals(features: tf.Tensor, q: Natural) -> Marginals:
    if features.shape[1] < features.shape[2]:
        return marginals_of_few(tf.cast(features, q.h.dtype), tf.linalg.cholesky(q.P), q.h)
    solution = solve(q)
    return marginals(features, solution.R, solution.c)


def _estimate_elbo(
    sums: Callable[..., Any], state: Natural, rows: Rows, index: Any, num_data: float
) -> float:
    """The ELBO at `state` with the likelihood's part estimated from the latest rows."""
    latest = index.reshape(-1)[-max(_ELBO_ROWS, index.shape[1]) :]
    q = compiled_solve(*state)
    expectation = sums(q.R, q.c, *rows.take(latest)).expectation
    return float(expectation * (num_data / len(latest)) - q.kl)
