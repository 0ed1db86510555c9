"""What is trainable in a model beside q, and its log prior density."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray, PriorOn
from gpflow.config import default_float

from .shared_graph import Compiled, parameters_of


def log_density(prior: Any, transform: Any, on: Any, unconstrained: tf.Tensor) -> tf.Tensor:
    """As `gpflow.Parameter.log_prior_density`: the density of the constrained value, summed."""
    if prior is None:
        return tf.zeros([], unconstrained.dtype)
    value = unconstrained if transform is None else transform.forward(unconstrained)
    if on == PriorOn.CONSTRAINED:
        return tf.reduce_sum(prior.log_prob(value))
    log_p = tf.reduce_sum(prior.log_prob(unconstrained))
    if transform is None:
        return log_p
    rank = len(value.shape)
    return log_p + tf.reduce_sum(transform.inverse_log_det_jacobian(value, rank))


class Plan(NamedTuple):
    """
    What is learned of the parameters of some modules; part of a graph's structure.

    :ivar learned: of each parameter, in the order of `parameters_of`, whether it is.
    :ivar priors: prior, transform and `prior_on` of each that is learned.
    """

    learned: tuple[bool, ...]
    priors: tuple[Any, ...]

    def mine(self, values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """
        :param values: unconstrained, of all parameters.
        :return: copies of those that are learned. (TFP's bijectors remember what they made of a
            tensor, and a tape would not see it.)
        """
        return [tf.identity(value) for value, learned in zip(values, self.learned) if learned]

    def merge(self, values: Sequence[tf.Tensor], mine: list[tf.Tensor]) -> tuple[tf.Tensor, ...]:
        """:return: all values, `mine` in their places."""
        moved = iter(mine)
        return tuple(
            next(moved) if learned else value for value, learned in zip(values, self.learned)
        )

    def log_prior(self, mine: list[tf.Tensor]) -> tf.Tensor:
        """:return: [], log prior density of what is learned."""
        pairs = zip(self.priors, mine)
        return tf.add_n([log_density(prior, how, on, v) for (prior, how, on), v in pairs])


_compiled_log_density = Compiled(log_density)


class Hyperparameters:
    """
    The trainable parameters of a model beside those of q, and bare variables, such as those of a
    Keras layer in a kernel.

    :ivar named: by their names in GPflow, such as ".kernel.lengthscales".
    :ivar variables: their unconstrained variables.
    """

    def __init__(self, model: Any) -> None:
        """
        :param model: a `gpflow.Module`, whose q, if it has parameters, are `q_mu` and `q_sqrt`.
        """
        self._likelihood = model.likelihood
        of_q = {id(getattr(model, name, None)) for name in ("q_mu", "q_sqrt")}
        named = gpflow.utilities.parameter_dict(model).items()
        once = {id(p): (name, p) for name, p in named if p.trainable and id(p) not in of_q}
        self.named: dict[str, gpflow.Parameter | tf.Variable] = dict(once.values())
        self.variables: list[tf.Variable] = [
            getattr(p, "unconstrained_variable", p) for p in self.named.values()
        ]

    def plan(self, modules: tuple[Any, ...]) -> tuple[Plan, list[gpflow.Parameter]]:
        """:return: what is learned in `modules`: for a graph, and as parameters in its order."""
        parameters = parameters_of(*modules)
        learned = {id(p) for p in self.named.values()}
        mine = [p for p in parameters if id(p) in learned]
        priors = tuple((p.prior, p.transform, p.prior_on) for p in mine)
        return Plan(tuple(id(p) in learned for p in parameters), priors), mine

    def values(self) -> dict[str, AnyNDArray]:
        """:return: the present values of the hyperparameters by name."""
        return {name: np.array(p.numpy()) for name, p in self.named.items()}

    def check_start(self) -> None:
        """
        :raise ValueError: if a hyperparameter, or the density of its prior there, is not finite,
            or the likelihood's own `check_learnable`, where it has one, objects.
        """
        if hasattr(self._likelihood, "check_learnable"):
            self._likelihood.check_learnable()
        for name, value in self.values().items():
            if not np.isfinite(value).all():
                raise ValueError(f"{name} is {value}: learning needs finite values to start from")
            prior = getattr(self.named[name], "prior", None)
            if prior is not None and not np.isfinite(self.named[name].log_prior_density()):
                raise ValueError(
                    f"the prior of {name}, {prior.name}, excludes the value {value} at which "
                    "learning starts: assign one that it allows"
                )

    def log_prior(self) -> tf.Tensor:
        """:return: [], log prior density of the hyperparameters, as `model.log_prior_density`."""
        densities = [
            _compiled_log_density.bind(p.prior, p.transform, p.prior_on)(p.unconstrained_variable)
            for p in self.named.values()
            if getattr(p, "prior", None) is not None
        ]
        return tf.add_n(densities) if densities else tf.zeros([], default_float())
