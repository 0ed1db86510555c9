"""The loop of `ML2`: natural-gradient steps on q, and steps of Keras optimisers on the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray
from gpflow.keras import tf_keras

from ..data.batch import Batch, take
from ..engine.contracts import as_variables, in_training
from ..engine.hyperparameters import Hyperparameters
from ..engine.natural import Natural, blend
from ..engine.projection import project_batch
from ..engine.shared_graph import concrete, specs_of
from ..engine.statistics import accumulate, batch_marginals, local_for_gradient, sum_sites


class Constants(NamedTuple):
    """Constants during a block."""

    scale: tf.Tensor  #: [], num_data / B
    jitter: tf.Tensor  #: [], of Kuu
    damping: tf.Tensor  #: [], factor of each optimiser step


class Given(NamedTuple):
    """The steps of a block: t = 0..T-1."""

    rates: tf.Tensor  #: [T], of the natural-gradient steps
    moves: tf.Tensor  #: [T], whether there is an optimiser step too
    index: tf.Tensor  #: [T, B], row numbers
    rows: Batch


def optimizer_of(option: Any) -> Any:
    """:return: a fresh optimiser: a copy of a Keras optimiser, or Adam with this rate."""
    if hasattr(option, "get_config"):
        return type(option).from_config(option.get_config())
    return tf_keras.optimizers.Adam(float(option), epsilon=1e-8)


class Learner:
    """
    The graphs of one fit. They update the model's variables in place, so that Keras optimisers and
    layers with state work as usual.
    """

    def __init__(self, hyper: Hyperparameters, optimizer: Any, network_optimizer: Any) -> None:
        self._hyper, (self._likelihood, self._prior) = hyper, hyper.modules
        held = [v for network in hyper.networks for v in network.all_weights()]
        weights = {id(v) for v in held}
        parts = [
            (optimizer, [v for v in hyper.variables if id(v) not in weights]),
            (network_optimizer, [v for v in hyper.variables if id(v) in weights]),
        ]
        self._parts = [(optimizer_of(option), own) for option, own in parts if own]
        for optimizer, own in self._parts:
            optimizer.build(own)
            held += [*own, *as_variables(optimizer.variables)]
        self._variables = list({id(v): v for v in held}.values())
        self._graphs: dict[Any, Any] = {}

    def state(self) -> tuple[AnyNDArray, ...]:
        """:return: values of all learned parameters, and the state of the optimisers."""
        return tuple(variable.numpy() for variable in self._variables)

    def assign(self, state: Sequence[AnyNDArray]) -> None:
        """Restore the values of `state`."""
        for variable, value in zip(self._variables, state):
            variable.assign(value)

    @check_shapes(
        "natural.h: [L, M]", "given.rates: [T]", "given.index: [T, B]", "return.h: [L, M]"
    )
    def __call__(self, natural: Natural, constants: Constants, given: Given) -> Natural:
        """
        For t = 0..T-1 take a natural-gradient step on the minibatch of rows index[t]; if moves[t],
        also an optimiser step with the gradients at the same q on the same rows.

        :return: q after the steps.
        """
        arguments = (natural, constants, given)
        # The graph is of one fit: it is faster if M is static.
        exact = [tf.TensorSpec(part.shape, part.dtype) for part in natural]
        flat = [*exact, *specs_of((constants, given))]
        key, specs = tuple(flat), tf.nest.pack_sequence_as(arguments, flat)
        if key not in self._graphs:
            with in_training(self._hyper.networks):
                self._graphs[key] = concrete(self._steps, *specs)
        return Natural(*tf.nest.flatten(self._graphs[key](*arguments)))

    def _steps(self, natural: Natural, constants: Constants, given: Given) -> Natural:
        def body(t: tf.Tensor, natural: Natural) -> Any:
            batch, rate = take(given.rows, given.index[t]), given.rates[t]
            natural = tf.cond(
                given.moves[t],
                lambda: self._learn(natural, constants, batch, rate),
                lambda: self._step(natural, constants, batch, rate),
            )
            return t + 1, natural

        num_steps = tf.shape(given.index)[0]
        _, natural = tf.while_loop(
            lambda t, *_: t < num_steps, body, (0, natural), parallel_iterations=1
        )
        return natural

    def _step(
        self, natural: Natural, constants: Constants, batch: Batch, rate: tf.Tensor
    ) -> Natural:
        """:return: q after a natural-gradient step of size `rate`."""
        rows = project_batch(self._prior, batch, constants.jitter)
        f = batch_marginals(rows.features.phi, natural, _few(batch, natural))
        return _blend(natural, accumulate(self._likelihood, rows, f).sums, constants, rate)

    def _learn(
        self, natural: Natural, constants: Constants, batch: Batch, rate: tf.Tensor
    ) -> Natural:
        """As `_step`, with an optimiser step; rows are projected once."""
        mine = self._hyper.variables
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(mine)
            rows = project_batch(self._prior, batch, constants.jitter)
            f = batch_marginals(rows.features.phi, natural, _few(batch, natural))
            local = local_for_gradient(self._likelihood)(self._likelihood, rows, f)
            loss = -constants.scale * tf.reduce_sum(local.expectation)
            loss -= self._hyper.log_prior(mine)
            loss += sum(part for network in self._hyper.networks for part in network.losses())
        gradients = tape.gradient(loss, mine, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        self._move({id(v): gradient for v, gradient in zip(mine, gradients)}, constants.damping)
        return _blend(natural, sum_sites(rows, local.sites), constants, rate)

    def _move(self, gradients: dict[int, tf.Tensor], damping: tf.Tensor) -> None:
        for optimizer, own in self._parts:
            before = [tf.identity(variable) for variable in own]
            optimizer.apply_gradients([(gradients[id(v)], v) for v in own])
            for variable, old in zip(own, before):
                step = tf.cast(damping, old.dtype) * (variable - old)
                variable.assign(tf.where(damping < 1, old + step, variable))


def _few(batch: Batch, q: Natural) -> bool:
    """:return: True if there are fewer rows than features, both known at tracing."""
    return bool(batch.X.shape[0] < q.h.shape[1])


def _blend(old: Natural, sums: Natural, constants: Constants, rate: tf.Tensor) -> Natural:
    return blend(old, Natural(*(constants.scale * part for part in sums)), rate)
