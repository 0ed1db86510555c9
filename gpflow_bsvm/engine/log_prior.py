"""The log prior density of the hyperparameters and its gradient, in a small graph of its own.

A graph freezes a distribution's numbers. In the estimators' priors these numbers depend on the
penalty, so a bound's graph with priors would be traced again for every penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import PriorOn
from gpflow.config import default_float

from .shared_graph import Compiled


class Kind(NamedTuple):
    """A parameter's prior without its numbers, which graphs take as tensors."""

    make: Any  #: the class of the distribution, or the distribution itself if it has no numbers
    options: dict[str, Any]
    names: tuple[str, ...]  #: names of the numbers
    transform: Any
    on: PriorOn


def _kind_and_numbers(parameter: Any) -> tuple[Kind, tuple[tf.Tensor, ...]]:
    prior = parameter.prior
    numbers = {name: value for name, value in prior.parameters.items() if _is_number(value)}
    # TFP's distributions can be rebuilt from their parameters; a user's may not list all of them.
    if not numbers or not type(prior).__module__.startswith("tensorflow_probability."):
        return Kind(prior, {}, (), parameter.transform, parameter.prior_on), ()
    options = {n: v for n, v in prior.parameters.items() if n not in numbers}
    kind = Kind(type(prior), options, tuple(numbers), parameter.transform, parameter.prior_on)
    return kind, tuple(tf.convert_to_tensor(value, prior.dtype) for value in numbers.values())


def _is_number(value: Any) -> bool:
    """:return: True for a number or a vector: a tensor, not part of the prior's kind."""
    if isinstance(value, tf.Tensor) and hasattr(value, "numpy"):
        value = value.numpy()
    known = isinstance(value, (float, np.ndarray))
    return known and np.ndim(value) < 2 and np.issubdtype(np.asarray(value).dtype, np.floating)


@check_shapes("return: []")
def log_prior_density(kind: Kind, numbers: Sequence[Any], unconstrained: tf.Tensor) -> tf.Tensor:
    """As in `gpflow.Parameter.log_prior_density`: the density of the constrained value, summed."""
    given = dict(zip(kind.names, numbers))
    prior = kind.make(**kind.options, **given) if given else kind.make
    if kind.transform is None:
        return tf.reduce_sum(prior.log_prob(unconstrained))
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
    """The log prior density of parameters, some without priors, at their current values."""

    def __init__(self, learned: Sequence[Any]) -> None:
        """:param learned: parameters, and variables (without priors)."""
        self._places = [n for n, p in enumerate(learned) if getattr(p, "prior", None) is not None]
        known = [_kind_and_numbers(learned[place]) for place in self._places]
        self._kinds = tuple(k for k, _ in known)
        self._numbers = tuple(n for _, n in known)
        self._graph = _value_and_gradient.bind(self._kinds)

    @check_shapes("return: []")
    def __call__(self, mine: Sequence[Any]) -> tf.Tensor:
        """:return: the density at these unconstrained values, for use in a graph."""
        values = [tf.convert_to_tensor(mine[place]) for place in self._places]
        found = list(map(log_prior_density, self._kinds, self._numbers, values))
        return tf.add_n(found) if found else tf.zeros([], default_float())

    def value_and_gradient(self, mine: Sequence[Any]) -> tuple[tf.Tensor, dict[int, tf.Tensor]]:
        """:return: the density, and its gradient by index of the parameters with priors."""
        if not self._places:
            return tf.zeros([], default_float()), {}
        values = tuple(tf.convert_to_tensor(mine[place]) for place in self._places)
        total, gradient = self._graph(self._numbers, values)
        return total, dict(zip(self._places, gradient))
