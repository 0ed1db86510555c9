"""A criterion as a function of the logarithms of parameters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from gpflow.utilities import multiple_assign

from .criterion import Criterion
from .gram import trainable

#: Values of parameters by name; other parameters do not change.
Values = Mapping[str, Any]
PENALTY = "penalty"


class Search:
    """The function that SciPy minimizes: cost of a vector of logarithms, [P]."""

    def __init__(
        self, criterion: Criterion, kernel: Kernel, data: Any, penalty: float, learn: bool
    ) -> None:
        """:param learn: whether to include the penalty."""
        self.criterion, self._kernel, self._data, self._penalty = criterion, kernel, data, penalty
        self._start = positive_values(kernel) | ({PENALTY: np.asarray(penalty)} if learn else {})
        if not self._start:
            raise ValueError("there is nothing to search: no parameter of the kernel is trainable")

    def at(self, values: Values) -> AnyNDArray:
        """:return: the vector for a start."""
        unknown = set(values) - set(self._start) - {PENALTY}
        if unknown:
            known = ", ".join(self._start)
            raise ValueError(f"a start names {sorted(unknown)}; trainable are {known}")
        parts = {name: np.asarray(values.get(name, own)) for name, own in self._start.items()}
        for name, part in parts.items():
            if part.shape != self._start[name].shape or not (part > 0).all():
                raise ValueError(f"a start's {name} must be positive, as {self._start[name]}")
        return np.log(np.concatenate([np.reshape(part, -1) for part in parts.values()]))

    def split(self, x: AnyNDArray) -> dict[str, AnyNDArray]:
        """:return: entries of a vector by name."""
        ends = np.cumsum([value.size for value in self._start.values()])[:-1]
        pairs = zip(self._start.items(), np.split(x, ends))
        return {name: part.reshape(value.shape) for (name, value), part in pairs}

    def values(self, x: AnyNDArray) -> dict[str, AnyNDArray]:
        """:return: values by name."""
        return self.split(np.exp(x))

    def assign(self, values: Values) -> float:
        """Set the kernel's parameters. :return: the penalty."""
        multiple_assign(self._kernel, {name: v for name, v in values.items() if name != PENALTY})
        return float(values.get(PENALTY, self._penalty))

    def value(self, x: AnyNDArray) -> float:
        """:return: the criterion; raises its errors about x."""
        penalty = self.assign(self.values(x))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.criterion(self._kernel, self._data, penalty)

    def cost(self, x: AnyNDArray) -> float:
        """:return: the value to minimize; infinity if the kernel overflows."""
        try:
            return self.criterion.cost(self.value(x))
        except ValueError:
            return math.inf

    def cost_and_slope(self, x: AnyNDArray) -> tuple[float, AnyNDArray]:
        """:return: the cost, and its derivatives in the logarithms."""
        penalty = self.assign(self.values(x))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.criterion.gradient(self._kernel, self._data, penalty)
        slopes = found.kernel | {PENALTY: np.asarray(found.penalty)}
        flat = np.concatenate([np.reshape(slopes[name], -1) for name in self._start])
        return self.criterion.cost(found.value), self.criterion.cost(1.0) * flat * np.exp(x)


def positive_values(kernel: Kernel) -> dict[str, AnyNDArray]:
    """
    :return: trainable values by name.
    :raise ValueError: if some are not positive.
    """
    named = {name: parameter.numpy() for name, parameter in trainable(kernel).items()}
    for name, value in named.items():
        if not (value > 0).all():
            raise ValueError(
                f"kernel{name} is {value}: the search needs positive values; set_trainable(..., "
                "False) fixes it"
            )
    return named
