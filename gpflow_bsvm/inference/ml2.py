"""Type-II maximum likelihood on minibatches: q and the hyperparameters in turn, in one loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray, RegressionData

from ..checks import check_least, check_model
from ..data.sources import Source, latest, source_of
from ..engine.hyperparameters import Hyperparameters
from ..engine.m_step import compiled_expectation
from ..engine.natural import Natural, compiled_centre, compiled_solve
from ..engine.projected_data import shares_shifts
from .history import Callback, History, Recorder
from .ml2_loop import Adam, Point, compiled_learn
from .schedules import Constant, RobbinsMonro, Schedule, rates

#: A block of steps that ends in no finite q is left out, and Adam's rate halved, this often.
_MOST_HALVINGS = 20


@dataclass(frozen=True)
class ML2:
    """
    Type-II maximum likelihood (ML-II) on minibatches (Wenzel et al. 2017, section 4.3): learns the
    trainable parameters of kernel, inducing variable, mean function and likelihood together with q,
    by a step of Adam (Kingma & Ba 2015) after every `every` natural-gradient steps, in one compiled
    loop. Where all the data can be looked at, `VEM` needs neither rates nor patience.

    In a step of Adam the whitened q(s), u = Lz s, stays where it is. The paper takes 10 steps on q
    for one on the kernel; every other step got to a given bound in a quarter of the steps on
    waveform, banana and splice.

    :ivar batch_size: rows of a minibatch (for arrays; a `tf.data.Dataset` brings its own batches).
    :ivar num_steps: natural-gradient steps in all.
    :ivar learning_rate: of these: a function of the step number from 0, or a number in (0, 1]. It
        need not go to 0: hyperparameters move on.
    :ivar every: natural-gradient steps from one step of Adam to the next.
    :ivar adam_rate: of Adam, in GPflow's unconstrained parameters.
    :ivar seed: of the order of the rows (for arrays).
    :ivar record_every: steps between records (history, callback, monitor, progress bar).
    """

    batch_size: int = 100
    num_steps: int = 5000
    learning_rate: Schedule | float = field(default_factory=RobbinsMonro)
    every: int = 2
    adam_rate: float = 0.05
    seed: int = 0
    record_every: int = 250

    def __post_init__(self) -> None:
        check_least(
            1,
            batch_size=self.batch_size,
            num_steps=self.num_steps,
            every=self.every,
            record_every=self.record_every,
        )
        if isinstance(self.learning_rate, (int, float)):
            Constant(self.learning_rate)
        if not self.adam_rate > 0:
            raise ValueError(f"adam_rate must be positive, got {self.adam_rate}")

    def run(
        self,
        model: Any,
        data: RegressionData | tf.data.Dataset | None = None,
        *,
        sample_weight: Any = None,
        callback: Callback | None = None,
        monitor: Callable[[int], Any] | None = None,
        progress: bool | None = None,
    ) -> History:
        """
        Fit q and the hyperparameters; the model holds those of the latest record at the end, also
        after an interrupt. The history's `elbo` is an estimate, with the log prior density.

        Arguments and errors as in `SVI.run`.

        :raise ValueError: also if nothing but q is trainable, a start value or the density of its
            prior is not finite, or the kernel has state that is no `gpflow.Parameter`.
        :raise FloatingPointError: if not even the smallest step of Adam leaves a finite q.
        """
        check_model(model)
        modules = (model.likelihood, model.kernel, model.inducing_variable, model.mean_function)
        learner = _Learner(self, model, modules)
        source, num_data = source_of(
            model, data, sample_weight, self.batch_size, self.seed, _RawRows
        )
        with Recorder(model, self.num_steps, callback, monitor, progress) as recorder:
            learner.run(source, num_data, recorder)
        return recorder.history


class _Raw(NamedTuple):
    X: tf.Tensor
    Y: tf.Tensor
    weight: tf.Tensor


class _RawRows:
    """Rows that are projected in the loop, where the hyperparameters are known."""

    def __init__(self, X: AnyNDArray, Y: AnyNDArray, weight: AnyNDArray) -> None:
        self._columns = _Raw(*(tf.convert_to_tensor(column) for column in (X, Y, weight)))

    def __len__(self) -> int:
        return len(self._columns.X)

    def take(self, index: AnyNDArray) -> tuple[_Raw, AnyNDArray]:
        return self._columns, index


class _Learner:
    """Blocks of steps; one that ends in no finite ELBO is undone, and Adam's rate halved."""

    def __init__(self, options: ML2, model: Any, modules: tuple[Any, ...]) -> None:
        self._options, self._model = options, model
        self._hyper = Hyperparameters(model)
        self._hyper.check_start()
        self._plan, self._mine = self._hyper.plan(modules)
        self._check_learned()
        self._learn = compiled_learn.bind(*modules, self._plan)
        self._expectation = compiled_expectation.bind(*modules)
        self._rate = options.adam_rate
        self._natural = model.natural()
        self._adam = Adam.start(self._values())

    def _check_learned(self) -> None:
        if not self._hyper.named:
            raise ValueError("nothing but q is trainable: use SVI")
        if len(self._mine) < len(self._hyper.named):
            raise ValueError(
                "kernel, mean function and likelihood must hold their state in gpflow.Parameters: "
                "nothing else can be moved in a compiled loop"
            )

    def _values(self) -> list[tf.Tensor]:
        return [tf.convert_to_tensor(p.unconstrained_variable) for p in self._mine]

    def run(self, source: Source, num_data: float, recorder: Recorder) -> None:
        """Steps from `source` until there are enough."""
        options, step, halvings = self._options, 0, 0
        recorder.state = self._natural
        for rows, index in source.blocks(min(options.record_every, options.num_steps)):
            index = index[: options.num_steps - step]
            elbo = self._block(step, rows, index, num_data)
            if elbo is None:
                halvings += 1
                self._halve(halvings)
                continue
            step += len(index)
            rho = rates(options.learning_rate, step - 1, 1)[0]
            recorder.record(step, elbo, rho, self._natural, self._hyper.values())
            if step >= options.num_steps:
                return

    def _halve(self, halvings: int) -> None:
        self._rate /= 2
        if halvings > _MOST_HALVINGS:
            raise FloatingPointError(
                f"no finite q after a block of steps, even with Adam's rate at {self._rate:.1e}: "
                "standardise X, and start from moderate kernel values"
            )

    def _block(self, step: int, rows: _Raw, index: AnyNDArray, num_data: float) -> float | None:
        """:return: an estimate of the ELBO after a block; None: it is as if there was no block."""
        before = self._values()
        try:
            point = self._steps(step, rows, index, num_data)
            natural = point.natural
            self._assign(self._plan.mine(point.values))
            if shares_shifts(self._model):
                natural = compiled_centre(*natural)
            elbo = self._elbo(natural, rows, index, num_data)
        except tf.errors.InvalidArgumentError:  # a matrix without a Cholesky factor
            elbo = float("nan")
        if not np.isfinite(elbo):
            self._assign(before)
            return None
        self._natural, self._adam = natural, point.adam
        return elbo

    def _assign(self, values: Sequence[tf.Tensor]) -> None:
        for parameter, value in zip(self._mine, values):
            parameter.unconstrained_variable.assign(value)

    def _steps(self, step: int, rows: _Raw, index: AnyNDArray, num_data: float) -> Point:
        dtype, options = self._natural.h.dtype, self._options
        moves = (step + 1 + np.arange(len(index))) % options.every == 0
        return Point.of(
            *self._learn(
                *self._natural,
                tf.constant(num_data / index.shape[1], dtype),
                tf.constant(self._model.jitter, dtype),
                tf.constant(self._rate, dtype),
                tf.constant(rates(options.learning_rate, step, len(index)), dtype),
                tf.constant(moves),
                tf.constant(index),
                *rows,
                self._adam.step,
                *self._adam.mean,
                *self._adam.square,
            )
        )

    def _elbo(self, natural: Natural, rows: _Raw, index: AnyNDArray, num_data: float) -> float:
        """The ELBO, its expectation estimated from the latest rows, with the log prior density."""
        seen = latest(index)
        q = compiled_solve(*natural)
        jitter = tf.constant(self._model.jitter, q.R.dtype)
        columns = (tf.gather(column, seen) for column in rows)
        expectation = self._expectation(jitter, *columns, q.R, q.c)
        log_prior = self._hyper.log_prior()
        return float(expectation * (num_data / len(seen)) - q.kl + log_prior)
