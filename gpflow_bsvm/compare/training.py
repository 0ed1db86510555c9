"""How GPflow's SVGP is trained, and what it shares with BSVM.

A `Trainer` keeps one model and its compiled steps for all folds, so that tracing them is paid for
once.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.config import default_float

from .registry import KernelSettings

#: Told training seconds so far and the ELBO; called while the model holds that state.
Watch = Callable[[float, float], None]

#: The kernel is learnt by this many rounds of a natural-gradient step and an Adam step.
KERNEL_ROUNDS = 200
ADAM_RATE = 0.05

#: Natural-gradient ascent stops when the ELBO changes by less than this, relatively.
TOLERANCE = 1e-5
MAX_STEPS = 100
#: Natural-gradient steps that start small grow by this factor from one to the next.
GROWTH = 1.2


@dataclass(frozen=True)
class NaturalGradientSteps:
    """
    What a likelihood asks of natural gradients.

    :ivar sizes: of the step at a fixed kernel, in (0, 1], the next where one fails.
    :ivar learning: the same where Adam learns the kernel in between.
    :ivar ramp: whether steps start at a single row's worth, 1 / N, and grow from there.
    :ivar window: so many ELBOs make a mean for the stopping rule; 1 where they have no noise.
    """

    sizes: tuple[float, ...] = (1.0, 0.1)
    learning: tuple[float, ...] = (0.5, 0.1)
    ramp: bool = False
    window: int = 1


class Stopwatch:
    """Seconds since it was made, without those in `paused` blocks."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """:return: seconds that count."""
        return time.perf_counter() - self._start

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the watch for the length of the block."""
        begin = time.perf_counter()
        yield
        self._start += time.perf_counter() - begin


class Trainer:
    """A model of fixed size, and its compiled steps."""

    def __init__(
        self,
        model_class: type[gpflow.models.SVGP],
        likelihood: Any,
        Z: AnyNDArray,
        steps: NaturalGradientSteps,
        ard: bool = False,
    ) -> None:
        """
        :param Z: [M, D], for the shape; `reset` sets the values.
        :param ard: whether every input has its own lengthscale.
        """
        lengthscales = np.ones(Z.shape[1]) if ard else 1.0
        kernel = gpflow.kernels.SquaredExponential(lengthscales=lengthscales)
        num_latents = likelihood.latent_dim or 1
        self.model = model_class(kernel, likelihood, Z, num_latent_gps=num_latents)
        self.steps = steps
        # GPflow's Bernoulli takes only floats for labels, its Softmax only integers.
        self._label_dtype = default_float() if num_latents == 1 else np.int64
        # Folds differ by a row: without signatures each new length would be traced anew.
        X = tf.TensorSpec([None, Z.shape[1]], default_float())
        self._data = (X, tf.TensorSpec([None, 1], self._label_dtype))
        self._gamma = tf.Variable(1.0, dtype=default_float())  # it may grow from step to step
        self.elbo = tf.function(lambda X, Y: self.model.elbo((X, Y)), input_signature=self._data)
        self.predict = tf.function(lambda X: self.model.predict_y(X)[0], input_signature=[X])
        self._adam = gpflow.keras.tf_keras.optimizers.Adam(ADAM_RATE)
        self._adam.build(kernel.trainable_variables)
        self._compiled: dict[bool, Callable[..., tf.Tensor]] = {}

    def data(self, X: AnyNDArray, y: AnyNDArray) -> tuple[AnyNDArray, AnyNDArray]:
        """:return: X [N, D] and Y [N, 1], in the dtypes that the likelihood takes."""
        return X, y[:, None].astype(self._label_dtype)

    def reset(self, Z: AnyNDArray, kernel: KernelSettings) -> None:
        """Back to the prior, at these inducing points and hyperparameters."""
        model = self.model
        model.inducing_variable.Z.assign(Z)
        lengthscales = model.kernel.lengthscales
        lengthscales.assign(np.full(lengthscales.shape, kernel.lengthscale))
        model.kernel.variance.assign(kernel.variance)
        model.q_mu.assign(tf.zeros_like(model.q_mu))
        num_latents = model.q_sqrt.shape[0]
        model.q_sqrt.assign(tf.eye(len(Z), batch_shape=[num_latents], dtype=model.q_sqrt.dtype))
        for variable in self._adam.variables:  # its moments and its step number
            if variable is not self._adam.learning_rate:
                variable.assign(tf.zeros_like(variable))

    def step(self, gamma: float, learn: bool = False) -> Callable[..., tf.Tensor]:
        """
        :param gamma: size of the natural-gradient step, in (0, 1].
        :param learn: whether a step of Adam on the kernel follows.
        :return: a compiled function of X [N, D] and Y [N, 1] that steps and returns an ELBO that
            it meets on its way, so that the stopping rule costs no pass over the data: that before
            the step, or, with `learn`, that between its two halves.
        """
        self._gamma.assign(gamma)
        if learn not in self._compiled:
            self._compiled[learn] = self._compile(learn)
        return self._compiled[learn]

    def _compile(self, learn: bool) -> Callable[..., tf.Tensor]:
        model, optimizer = self.model, gpflow.optimizers.NaturalGradient(self._gamma)

        def step(X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
            seen: list[tf.Tensor] = []

            def loss() -> tf.Tensor:
                seen.append(model.training_loss((X, Y)))
                return seen[-1]

            optimizer.minimize(loss, [(model.q_mu, model.q_sqrt)])
            if learn:
                variables = model.kernel.trainable_variables
                with tf.GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(variables)
                    loss()
                self._adam.apply_gradients(zip(tape.gradient(seen[-1], variables), variables))
            return -seen[-1]

        compiled: Callable[..., tf.Tensor] = tf.function(step, input_signature=self._data)
        return compiled


def ascend(
    trainer: Trainer, data: Any, gamma: float, clock: Stopwatch, watch: Watch | None
) -> bool:
    """
    Natural-gradient steps on all the data until the ELBO changes no more, see `_settled`.

    :param gamma: size of the steps.
    :return: whether it did before `MAX_STEPS` were used up.
    :raise FloatingPointError: if q or ELBO is not finite, or the ELBO ends lower than it began.
    """
    elbos: list[float] = []
    for elbo in _steps(trainer, gamma, False, MAX_STEPS, data, clock, watch):
        elbos.append(elbo)
        if _settled(elbos, trainer.steps.window):
            return True
    if elbos[-1] < elbos[0]:
        raise FloatingPointError(f"ELBO fell from {elbos[0]:.6g} to {elbos[-1]:.6g}")
    return False


def _settled(elbos: list[float], window: int) -> bool:
    """
    :return: whether the mean of the last `window` ELBOs differs from that of the `window` before
        by at most `TOLERANCE`, relatively, or by no more than the standard error of that
        difference. A Monte Carlo ELBO is not known better than that.
    """
    if len(elbos) < 2 * window:
        return False
    before, last = np.reshape(elbos[-2 * window :], (2, window))
    noise = math.sqrt((before.var() + last.var()) / window)  # 0 for a window of 1
    change = abs(last.mean() - before.mean())
    return bool(change <= max(TOLERANCE * abs(last.mean()), noise))


def learn_kernel(
    trainer: Trainer, data: Any, gamma: float, clock: Stopwatch, watch: Watch | None
) -> None:
    """
    `KERNEL_ROUNDS` rounds of a natural-gradient step on q and an Adam step on the kernel, at fixed
    inducing points.

    :raise FloatingPointError: if q or ELBO is not finite.
    """
    for _ in _steps(trainer, gamma, True, KERNEL_ROUNDS, data, clock, watch):
        pass


def _steps(
    trainer: Trainer,
    gamma: float,
    learn: bool,
    num_steps: int,
    data: Any,
    clock: Stopwatch,
    watch: Watch | None,
) -> Iterator[float]:
    """Yield the ELBO that each step reports."""
    for number in range(num_steps):
        size = min(gamma, GROWTH**number / len(data[0])) if trainer.steps.ramp else gamma
        try:
            elbo = float(trainer.step(size, learn)(*data))
        except tf.errors.InvalidArgumentError as error:  # GPflow: not a positive definite q
            raise FloatingPointError(f"no finite q after step {number + 1}") from error
        if not math.isfinite(elbo):
            raise FloatingPointError(f"the ELBO is {elbo} at step {number + 1}")
        if watch is not None:
            with clock.paused():
                watch(clock.seconds, float(trainer.elbo(*data)))
        yield elbo
