"""How GPflow's SVGP is trained.

A `Trainer` keeps one model and its compiled steps for all folds, so that they are traced only once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from gpflow.kernels import Constant, Kernel, SquaredExponential
from gpflow.likelihoods import Likelihood

from .registry import KernelSettings

#: Number of rounds, a natural-gradient step and an Adam step each, that learn the kernel.
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
    Settings of natural gradients that suit a likelihood.

    :ivar sizes: step sizes at a fixed kernel, in (0, 1], each tried where the one before fails.
    :ivar learning: the same for a kernel that Adam learns in between.
    :ivar ramp: whether step sizes start at 1 / N, the worth of one row, and grow from there.
    :ivar window: number of ELBOs averaged by the stopping rule; 1 where they have no noise.
    """

    sizes: tuple[float, ...] = (1.0, 0.1)
    learning: tuple[float, ...] = (0.5, 0.1)
    ramp: bool = False
    window: int = 1


def make_kernel(settings: KernelSettings, num_features: int) -> Kernel:
    """:return: a kernel, with a lengthscale for every feature if it is to be learned."""
    shape = (num_features,) if settings.learn else ()
    smooth = SquaredExponential(settings.variance, np.full(shape, settings.lengthscale))
    return smooth + Constant(settings.offset) if settings.offset else smooth


class Trainer:
    """A model of fixed size, and its compiled steps."""

    def __init__(
        self,
        likelihood: Likelihood,
        Z: AnyNDArray,
        kernel: KernelSettings,
        steps: NaturalGradientSteps,
    ) -> None:
        """:param Z: [M, D], for the shape, as `kernel` is; `reset` sets the values."""
        num_latents = likelihood.latent_dim or 1
        about = (make_kernel(kernel, Z.shape[1]), likelihood, Z)
        self.model = gpflow.models.SVGP(*about, num_latent_gps=num_latents)
        self._steps, self._learn = steps, kernel.learn
        # GPflow's Bernoulli takes only floats for labels, its Softmax only integers.
        self._label_dtype = default_float() if num_latents == 1 else np.int64
        # Folds differ by a row: without signatures each new length would be traced anew.
        X = tf.TensorSpec([None, Z.shape[1]], default_float())
        data = (X, tf.TensorSpec([None, 1], self._label_dtype))
        self._gamma = tf.Variable(1.0, dtype=default_float())  # it may grow from step to step
        self._natural_gradient = gpflow.optimizers.NaturalGradient(self._gamma)
        self._adam = gpflow.keras.tf_keras.optimizers.Adam(ADAM_RATE)
        self._adam.build(self.model.kernel.trainable_variables)
        self.predict = tf.function(lambda X: self.model.predict_y(X)[0], input_signature=[X])
        self._natural_step = tf.function(self._step_q, input_signature=data)
        self._learning_step = tf.function(self._step_both, input_signature=data)

    def reset(self, Z: AnyNDArray, kernel: KernelSettings) -> None:
        """Return to the prior, at these inducing points and hyperparameters."""
        model = self.model
        model.inducing_variable.Z.assign(Z)
        fresh = make_kernel(kernel, Z.shape[1])
        gpflow.utilities.multiple_assign(model.kernel, gpflow.utilities.parameter_dict(fresh))
        model.q_mu.assign(tf.zeros_like(model.q_mu))
        model.q_sqrt.assign(np.broadcast_to(np.eye(len(Z)), model.q_sqrt.shape))
        for variable in self._adam.variables:  # its moments and its step number
            if variable is not self._adam.learning_rate:
                variable.assign(tf.zeros_like(variable))

    def train(self, X: AnyNDArray, y: AnyNDArray, gamma: float) -> bool:
        """
        Learn the kernel, if asked for, by `KERNEL_ROUNDS` rounds of a natural-gradient step on
        q and an Adam step on the kernel at fixed inducing points; then natural-gradient steps until
        the ELBO has settled, see `_settled`.

        :param gamma: step size.
        :return: True if it settled within `MAX_STEPS`.
        :raise FloatingPointError: if q or ELBO is not finite, or the ELBO ends lower than it began.
        """
        data, elbos = (X, y[:, None].astype(self._label_dtype)), list[float]()
        if self._learn:
            list(self._elbos(self._learning_step, KERNEL_ROUNDS, data, gamma))
        for elbo in self._elbos(self._natural_step, MAX_STEPS, data, gamma):
            elbos.append(elbo)
            if _settled(elbos, self._steps.window):
                return True
        if elbos[-1] < elbos[0]:
            raise FloatingPointError(f"ELBO fell from {elbos[0]:.6g} to {elbos[-1]:.6g}")
        return False

    def _elbos(
        self,
        step: Callable[..., tf.Tensor],
        num_steps: int,
        data: tuple[AnyNDArray, AnyNDArray],
        gamma: float,
    ) -> Iterator[float]:
        """Yield the ELBO that each step reports."""
        for number in range(num_steps):
            ramp = GROWTH**number / len(data[0]) if self._steps.ramp else 1.0
            self._gamma.assign(min(gamma, ramp))
            try:
                elbo = float(step(*data))
            except tf.errors.InvalidArgumentError as error:  # GPflow's, for an indefinite q
                raise FloatingPointError(f"no finite q after step {number + 1}") from error
            if not math.isfinite(elbo):
                raise FloatingPointError(f"the ELBO is {elbo} at step {number + 1}")
            yield elbo

    def _step_q(self, X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        """
        A natural-gradient step.

        :return: the ELBO before it, a by-product, so that the stopping rule costs no pass over the
            data.
        """
        seen: list[tf.Tensor] = []

        def loss() -> tf.Tensor:
            seen.append(self.model.training_loss((X, Y)))
            return seen[-1]

        self._natural_gradient.minimize(loss, [(self.model.q_mu, self.model.q_sqrt)])
        return -seen[0]

    def _step_both(self, X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        """
        A natural-gradient step, then an Adam step on the kernel.

        :return: the ELBO between the two.
        """
        self._step_q(X, Y)
        variables = self.model.kernel.trainable_variables
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            loss = self.model.training_loss((X, Y))
        self._adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return -loss


def _settled(elbos: list[float], window: int) -> bool:
    """
    :return: True if the mean of the last `window` ELBOs differs from that of the `window` before
        by at most `TOLERANCE`, relatively, or by no more than the standard error of that
        difference. A Monte Carlo ELBO is known no better.
    """
    if len(elbos) < 2 * window:
        return False
    before, last = np.reshape(elbos[-2 * window :], (2, window))
    noise = math.sqrt((before.var() + last.var()) / window)  # 0 for a window of 1
    change = abs(last.mean() - before.mean())
    return bool(change <= max(TOLERANCE * abs(last.mean()), noise))
