"""Trainable parameters besides q: their values, log prior density and gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray, PriorOn
from gpflow.config import default_float
from gpflow.optimizers import Scipy

from ..likelihoods.base import has_hook
from .contracts import Model, networks_in
from .shared_graph import Bound, Compiled
from .structure import look_into


class Kind(NamedTuple):
    """The distribution of a parameter's prior without its numbers, which graphs take as tensors."""

    make: Any  #: the class of the distribution, or the distribution itself if it has no numbers
    options: dict[str, Any]
    names: tuple[str, ...]  #: names of the numbers
    transform: Any
    on: PriorOn


def _kind_and_numbers(parameter: Any) -> tuple[Kind, tuple[tf.Tensor, ...]]:
    prior = parameter.prior
    numbers = {name: value for name, value in prior.parameters.items() if _is_number(value)}
    # TFP's distributions can be rebuilt from their parameters; a user's class may not list all.
    if not numbers or not type(prior).__module__.startswith("tensorflow_probability."):
        return Kind(prior, {}, (), parameter.transform, parameter.prior_on), ()
    options = {n: v for n, v in prior.parameters.items() if n not in numbers}
    kind = Kind(type(prior), options, tuple(numbers), parameter.transform, parameter.prior_on)
    return kind, tuple(tf.convert_to_tensor(value, prior.dtype) for value in numbers.values())


def _is_number(value: Any) -> bool:
    """:return: True for a number or vector, which graphs take as a tensor."""
    if isinstance(value, tf.Tensor) and hasattr(value, "numpy"):
        value = value.numpy()
    known = isinstance(value, (float, np.ndarray))
    return known and np.ndim(value) < 2 and np.issubdtype(np.asarray(value).dtype, np.floating)


@check_shapes("return: []")
def log_prior_density(kind: Kind, numbers: Sequence[Any], unconstrained: tf.Tensor) -> tf.Tensor:
    """As in `gpflow.Parameter.log_prior_density`: the density of the constrained value, summed."""
    given = dict(zip(kind.names, numbers))
    prior = kind.make(**kind.options, **given) if given else kind.make
    value = kind.transform.forward(unconstrained)
    if kind.on == PriorOn.CONSTRAINED:
        return tf.reduce_sum(prior.log_prob(value))
    log_det = tf.reduce_sum(kind.transform.inverse_log_det_jacobian(value, len(value.shape)))
    return tf.reduce_sum(prior.log_prob(unconstrained)) + log_det


@Compiled
@check_shapes("return[0]: []")
def _value_and_gradient(kinds: Any, numbers: Any, values: Any) -> tuple[tf.Tensor, Any]:
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        mine = tf.nest.map_structure(tf.identity, values)
        tape.watch(mine)
        total = tf.add_n(list(map(log_prior_density, kinds, numbers, mine)))
    return total, tape.gradient(total, mine)


class LogPrior:
    """
    The log prior density of parameters (0 for parameters without a prior) and its gradient, in a
    graph of its own. A graph freezes a distribution's numbers. In the estimators' priors, these
    numbers depend on the penalty: if a bound's graph included priors, each penalty would trace it.

    :ivar parameters: the parameters with priors.
    """

    def __init__(self, learned: Sequence[Any]) -> None:
        """:param learned: parameters, and variables (without priors)."""
        self._places = [n for n, p in enumerate(learned) if getattr(p, "prior", None) is not None]
        self.parameters = [learned[place] for place in self._places]
        known = list(map(_kind_and_numbers, self.parameters))
        kinds = tuple(k for k, _ in known)
        self._numbers = tuple(n for _, n in known)
        self._graph = _value_and_gradient.bind(kinds)

    def value_and_gradient(self, mine: Sequence[Any]) -> tuple[tf.Tensor, dict[int, tf.Tensor]]:
        """:return: the density, and its gradient by index of the parameters with priors."""
        if not self._places:
            return tf.zeros([], default_float()), {}
        values = tuple(tf.convert_to_tensor(mine[place]) for place in self._places)
        total, gradient = self._graph(self._numbers, values)
        return total, dict(zip(self._places, gradient))


def value_and_gradient(function: Callable[..., tf.Tensor], *, by_first: bool = False) -> Compiled:
    """
    :param function: a function of modules and tensors that returns a number.
    :param by_first: also differentiate with respect to the first argument (tensors in a structure).
    :return: a function of the tensors, for `Hyperparameters.bind`. It returns the number and its
        gradients in the learned parameters and, with `by_first`, in the first argument.
    """

    @functools.wraps(function)
    def graph(bound: Bound, values: list[tf.Tensor], *tensors: Any) -> Any:
        places, references = bound.modules[-1]  # `Hyperparameters.plan`
        # Copies, because TFP's bijectors cache results per tensor, which hides them from a tape.
        mine = [tf.identity(values[place]) for place in places]
        mine = mine or [reference.deref() for reference in references]
        at = tf.nest.map_structure(tf.identity, tensors[:by_first])
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch((mine, at))
            changed = dict(enumerate(values)) | dict(zip(places, mine))
            *modules, _ = bound.rebuild(list(changed.values()))
            value = function(*modules, *at, *tensors[by_first:])
        zero = tf.UnconnectedGradients.ZERO
        d_mine, d_at = tape.gradient(value, (mine, at), unconnected_gradients=zero)
        return value, tuple(d_mine), *d_at

    return Compiled(graph, rebuilds=True)


class Hyperparameters:
    """
    A model's trainable parameters besides q, and bare variables, such as the variables of a Keras
    layer in a kernel.

    :ivar named: parameters by GPflow's names, such as ".kernel.lengthscales"; the weights of
        networks are ".weights[0]" and so on.
    :ivar networks: the networks of the model.
    :ivar variables: their unconstrained variables, in the order of the gradients.
    :ivar plan: (places, references), one of them empty: places of the learned parameters in
        `Structure.parameters`, in the order of the gradients; or references to the variables, if
        modules hold state that only a graph captures, as a Keras layer does.
    :ivar log_prior: log prior density of the learned parameters.
    """

    def __init__(self, model: Model) -> None:
        self.likelihood = model.likelihood
        self.prior = model.prior
        self.named = model.hyperparameters()
        self.networks = networks_in(self.prior)
        chosen: list[Any] = list(self.named.values())
        parameters = look_into((self.likelihood, self.prior)).parameters
        ids = {id(p) for p in chosen}
        places = tuple(n for n, p in enumerate(parameters) if id(p) in ids)
        if is_known := len(places) == len(chosen):
            chosen = [parameters[place] for place in places]
        self.log_prior = LogPrior(chosen)
        self.variables = [getattr(p, "unconstrained_variable", p) for p in chosen]
        references = tuple(variable.ref() for variable in self.variables)
        self.plan = (places, ()) if is_known else ((), references)

    def bind(self, graph: Compiled) -> Callable[..., Any]:
        """:return: a `value_and_gradient`, bound to this model's likelihood and prior."""
        return graph.bind(self.likelihood, self.prior, self.plan)

    def values(self) -> dict[str, AnyNDArray]:
        """:return: the current values by name, without the (many) weights of networks."""
        weights = {id(v) for network in self.networks for v in network.all_weights()}
        return {name: np.array(p.numpy()) for name, p in self.named.items() if id(p) not in weights}

    def state(self) -> tuple[AnyNDArray, ...]:
        """:return: the unconstrained values of `variables`."""
        return tuple(variable.numpy() for variable in self.variables)

    def assign(self, state: Sequence[Any]) -> None:
        """Restore the values of `state`."""
        Scipy.assign_tensors(self.variables, state)

    def check_start(self) -> None:
        """
        :raise ValueError: if a hyperparameter or its prior density is not finite, or if the
            likelihood's `check_learnable` raises an error.
        """
        if has_hook(self.likelihood, "check_learnable"):
            self.likelihood.check_learnable()
        for name, value in self.values().items():
            if not np.isfinite(value).all():
                raise ValueError(f"{name} is {value}: learning needs finite values to start from")
            prior = getattr(self.named[name], "prior", None)
            if prior is not None and not np.isfinite(self.named[name].log_prior_density()):
                raise ValueError(
                    f"the prior of {name}, {prior.name}, excludes the value {value} at which "
                    "learning starts: assign an allowed value"
                )

    @check_shapes("return: []")
    def log_prior_density(self) -> tf.Tensor:
        """:return: log prior density of the hyperparameters, as in `model.log_prior_density`."""
        return self.log_prior.value_and_gradient(self.variables)[0]

    def with_prior(
        self, value: tf.Tensor, gradient: Sequence[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """:return: a function's value and gradient in `variables`, plus the log prior density's."""
        density, slopes = self.log_prior.value_and_gradient(self.variables)
        found = [part + slopes.get(place, 0.0) for place, part in enumerate(gradient)]
        return value + density, found
