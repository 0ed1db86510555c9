"""How the Gaussian-process peers are trained: one loop for GPflow's SVGP and for BSVM.

A `Trainer` keeps one model and its compiled steps for all folds, so that tracing them is paid for
once, in the warm-up fit, by every peer alike.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gpflow
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.config import default_float

from .. import models

#: Told training seconds so far and the ELBO; called while the model holds that state.
Watch = Callable[[float, float], None]

#: The kernel is learnt by this many rounds of a natural-gradient step and an Adam step.
KERNEL_ROUNDS = 200
ADAM_RATE = 0.05

#: Natural-gradient ascent stops when the ELBO changes by less than this, relatively.
TOLERANCE = 1e-5
MAX_STEPS = 100


@dataclass(frozen=True)
class KernelSettings:
    """
    :ivar lengthscale: of the squared exponential kernel, on standardised features.
    :ivar variance: of the kernel.
    :ivar learn: whether they are where learning starts, or fixed.
    """

    lengthscale: float
    variance: float
    learn: bool = False


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
        self, model_class: type[gpflow.models.SVGP], likelihood: Any, Z: AnyNDArray
    ) -> None:
        """
        :param Z: [M, D], for the shape; `reset` sets the values.
        """
        kernel = gpflow.kernels.SquaredExponential()
        self.model = model_class(kernel, likelihood, Z)
        # Folds differ by a row: without signatures each new length would be traced anew.
        X = tf.TensorSpec([None, Z.shape[1]], default_float())
        self._data = (X, tf.TensorSpec([None, 1], default_float()))
        self.elbo = tf.function(lambda X, Y: self.model.elbo((X, Y)), input_signature=self._data)
        self.predict = tf.function(lambda X: self.model.predict_y(X)[0], input_signature=[X])
        self._adam = gpflow.keras.tf_keras.optimizers.Adam(ADAM_RATE)
        self._adam.build(kernel.trainable_variables)
        self._steps: dict[tuple[float, bool], Callable[..., tf.Tensor]] = {}

    def reset(self, Z: AnyNDArray, kernel: KernelSettings) -> None:
        """Back to the prior, at these inducing points and hyperparameters."""
        model = self.model
        model.inducing_variable.Z.assign(Z)
        model.kernel.lengthscales.assign(kernel.lengthscale)
        model.kernel.variance.assign(kernel.variance)
        model.q_mu.assign(tf.zeros_like(model.q_mu))
        model.q_sqrt.assign(tf.eye(len(Z), batch_shape=[1], dtype=model.q_sqrt.dtype))
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
        if (gamma, learn) not in self._steps:
            self._steps[gamma, learn] = self._compile(gamma, learn)
        return self._steps[gamma, learn]

    def _compile(self, gamma: float, learn: bool) -> Callable[..., tf.Tensor]:
        model, natural_step = self.model, self._natural_step(gamma)

        def step(X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
            before = natural_step((X, Y))
            if not learn:
                return before
            variables = model.kernel.trainable_variables
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(variables)
                loss = model.training_loss((X, Y))
            self._adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return -loss

        compiled: Callable[..., tf.Tensor] = tf.function(step, input_signature=self._data)
        return compiled

    def _natural_step(self, gamma: float) -> Callable[[Any], tf.Tensor]:
        model = self.model

        def engine(data: Any) -> tf.Tensor:
            elbo = model.elbo(data)  # left out of the graph where nobody asks for it
            model.natgrad_step(data, gamma)
            return elbo

        optimizer = gpflow.optimizers.NaturalGradient(gamma)

        def gpflows(data: Any) -> tf.Tensor:
            seen: list[tf.Tensor] = []

            def loss() -> tf.Tensor:
                seen.append(model.training_loss(data))
                return seen[-1]

            optimizer.minimize(loss, [(model.q_mu, model.q_sqrt)])
            return -seen[0]

        return engine if isinstance(model, models.BSVM) else gpflows


def ascend(
    trainer: Trainer, data: Any, gamma: float, clock: Stopwatch, watch: Watch | None
) -> bool:
    """
    Natural-gradient steps on all the data until the ELBO changes by less than `TOLERANCE`.

    :return: whether it did before `MAX_STEPS` were used up.
    :raise FloatingPointError: if q or ELBO is not finite, or the ELBO ends lower than it began.
    """
    elbos: list[float] = []
    for elbo in _steps(trainer, trainer.step(gamma), MAX_STEPS, data, clock, watch):
        elbos.append(elbo)
        if len(elbos) > 1 and abs(elbo - elbos[-2]) <= TOLERANCE * abs(elbo):
            return True
    if elbos[-1] < elbos[0]:
        raise FloatingPointError(f"ELBO fell from {elbos[0]:.6g} to {elbos[-1]:.6g}")
    return False


def learn_kernel(
    trainer: Trainer, data: Any, gamma: float, clock: Stopwatch, watch: Watch | None
) -> None:
    """
    `KERNEL_ROUNDS` rounds of a natural-gradient step on q and an Adam step on the kernel, at fixed
    inducing points.

    :raise FloatingPointError: if q or ELBO is not finite.
    """
    for _ in _steps(trainer, trainer.step(gamma, True), KERNEL_ROUNDS, data, clock, watch):
        pass


def _steps(
    trainer: Trainer,
    step: Callable[..., tf.Tensor],
    num_steps: int,
    data: Any,
    clock: Stopwatch,
    watch: Watch | None,
) -> Iterator[float]:
    """Yield the ELBO that each step reports."""
    for number in range(num_steps):
        try:
            elbo = float(step(*data))
        except tf.errors.InvalidArgumentError as error:  # GPflow: not a positive definite q
            raise FloatingPointError(f"no finite q after step {number + 1}") from error
        if not math.isfinite(elbo):
            raise FloatingPointError(f"the ELBO is {elbo} at step {number + 1}")
        if watch is not None:
            with clock.paused():
                watch(clock.seconds, float(trainer.elbo(*data)))
        yield elbo
