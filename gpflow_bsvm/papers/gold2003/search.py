"""A criterion as a function of a vector, and the path of a search through it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from gpflow.utilities import multiple_assign

from ...data.checks import check_data
from ...likelihoods import Hinge
from .criterion import Criterion
from .gram import trainable
from .mode import svm_mode

#: Values of parameters by name; others stay as they are.
Values = Mapping[str, Any]
PENALTY = "penalty"


class Place(NamedTuple):
    """Where a search was."""

    parameters: dict[str, AnyNDArray]  #: what is learned, "penalty" too if it is
    value: float  #: of the criterion; NaN where it has none
    slopes: dict[str, AnyNDArray] | None  #: by logarithms of parameters, but by the penalty itself
    validation_error: float | None  #: share of validation rows that the machine gets wrong


class Look(NamedTuple):
    """Value and gradient of a criterion at a place."""

    x: AnyNDArray  #: [P]
    cost: float  #: NaN where there is none
    slope: AnyNDArray  #: [P], of the cost
    error: AnyNDArray  #: [P], standard errors, 0 where the slopes are exact


class Ending(NamedTuple):
    """Where a search ended."""

    x: AnyNDArray
    evaluations: int
    converged: bool


class Search:
    """
    A criterion as a function of a vector of logarithms.

    :ivar path: places that a search has kept.
    """

    def __init__(
        self,
        criterion: Criterion,
        kernel: Kernel,
        data: Any,
        penalty: float,
        learn: bool,
        *,
        linear_penalty: bool = False,
        validation: Any = None,
    ) -> None:
        """
        :param learn: whether the penalty is searched, too.
        :param linear_penalty: it stands for itself in the vector, not its logarithm.
        """
        self.criterion, self._kernel, self._data = criterion, kernel, data
        self._penalty, self._linear = penalty, linear_penalty
        self._validation = None if validation is None else check_validation(validation, data)
        self._start = positive_values(kernel) | ({PENALTY: np.asarray(penalty)} if learn else {})
        if not self._start:
            raise ValueError("nothing is to be searched: no parameter of the kernel is trainable")
        self.path: list[Place] = []

    @property
    def validates(self) -> bool:
        """:return: True if there are validation rows."""
        return self._validation is not None

    def at(self, values: Values) -> AnyNDArray:
        """:return: the vector of a start."""
        unknown = set(values) - set(self._start) - {PENALTY}
        if unknown:
            known = ", ".join(self._start)
            raise ValueError(f"a start names {sorted(unknown)}; trainable are {known}")
        parts = {name: np.asarray(values.get(name, own)) for name, own in self._start.items()}
        for name, part in parts.items():
            if part.shape != self._start[name].shape or not (part > 0).all():
                raise ValueError(f"a start's {name} must be positive, as {self._start[name]}")
        flat = np.concatenate([np.asarray(part, float).reshape(-1) for part in parts.values()])
        return np.where(self._itself, flat, np.log(flat))

    @property
    def _itself(self) -> AnyNDArray:
        """:return: True for entries of the vector that are not logarithms."""
        parts = [(name == PENALTY) & self._linear for name in self._start]
        return np.repeat(parts, [value.size for value in self._start.values()])

    def split(self, x: AnyNDArray) -> dict[str, AnyNDArray]:
        """:return: entries of a vector by name."""
        ends = np.cumsum([value.size for value in self._start.values()])[:-1]
        pairs = zip(self._start.items(), np.split(x, ends))
        return {name: part.reshape(value.shape) for (name, value), part in pairs}

    def values(self, x: AnyNDArray) -> dict[str, AnyNDArray]:
        """:return: values by name."""
        return self.split(np.where(self._itself, x, np.exp(np.where(self._itself, 0, x))))

    def scale(self, x: AnyNDArray) -> AnyNDArray:
        """:return: a step of 1 in each entry: a factor of e, or as much as the penalty."""
        return np.where(self._itself, np.abs(x), 1.0)

    def bounds(self, x: AnyNDArray, reach: float) -> AnyNDArray:
        """:return: [P, 2], what is less than a factor of e^reach away from x."""
        low = np.where(self._itself, x * math.exp(-reach), x - reach)
        return np.stack([low, np.where(self._itself, x * math.exp(reach), x + reach)], axis=1)

    def move(self, x: AnyNDArray) -> float:
        """Set the kernel's parameters. :return: the penalty."""
        values = self.values(x)
        penalty = float(values.pop(PENALTY, self._penalty))
        multiple_assign(self._kernel, values)
        return penalty

    def value(self, x: AnyNDArray) -> float:
        """:return: the criterion, NaN if it has no values. Its errors about x are raised."""
        penalty = self.move(x)
        if not self.criterion.has_value:
            return math.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.criterion(self._kernel, self._data, penalty)

    def cost(self, x: AnyNDArray) -> float:
        """:return: the value; infinity where the kernel overflows."""
        try:
            return self.criterion.cost(self.value(x))
        except ValueError:
            return math.inf

    def look(self, x: AnyNDArray) -> Look:
        """:return: cost and slopes."""
        penalty, criterion = self.move(x), self.criterion
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = criterion.gradient(self._kernel, self._data, penalty)
        slope = criterion.cost(1.0) * self._by_entries(x, found)
        error = np.zeros_like(slope)
        if found.error is not None:
            error = np.nan_to_num(self._by_entries(x, found.error), nan=np.inf, posinf=np.inf)
        return Look(x, criterion.cost(found.value), slope, error)

    def _by_entries(self, x: AnyNDArray, found: Any) -> AnyNDArray:
        """:return: derivatives by entries of the vector."""
        slopes = found.kernel | {PENALTY: np.asarray(found.penalty)}
        flat = np.concatenate([np.reshape(slopes[name], -1) for name in self._start])
        values = np.where(self._itself, 0, x)
        return np.where(self._itself, flat, flat * np.exp(values))

    def keep(self, x: AnyNDArray, cost: float, slope: AnyNDArray | None = None) -> None:
        """Add a place to the path."""
        value, sign = self.criterion.cost(cost), self.criterion.cost(1.0)
        slopes = None if slope is None else self.split(sign * slope)
        error = None if self._validation is None else self._validation_error(x)
        self.path.append(Place(self.values(x), value, slopes, error))

    def _validation_error(self, x: AnyNDArray) -> float:
        """:return: the support vector machine of x, with the slack of the criterion."""
        assert self._validation is not None
        penalty, slack = self.move(x), getattr(self.criterion, "slack", "linear")
        mode = svm_mode(self._kernel, self._data, penalty, slack=slack)
        X, Y = self._validation
        f = mode.predict(self._kernel, self._data[0], X)
        return float(((f > 0) != (Y[:, 0] == 1)).mean())


def positive_values(kernel: Kernel) -> dict[str, AnyNDArray]:
    """
    :return: values by name of what is trainable.
    :raise ValueError: if some are not positive.
    """
    named = {name: parameter.numpy() for name, parameter in trainable(kernel).items()}
    for name, value in named.items():
        if not (value > 0).all():
            raise ValueError(
                f"kernel{name} is {value}: logarithms are searched; set_trainable(..., False) "
                "keeps it as it is"
            )
    return named


def check_validation(validation: Any, data: Any) -> tuple[AnyNDArray, AnyNDArray]:
    """
    :return: X and Y.
    :raise ValueError: for anything but a pair of rows and labels as `data`.
    """
    if not isinstance(validation, tuple) or len(validation) != 2:
        raise ValueError(f"validation must be a pair (X, Y), got {type(validation).__name__}")
    X, Y = check_data(Hinge(), *validation)
    width = np.shape(data[0])[1]
    if X.shape[1] != width:
        raise ValueError(f"validation has {X.shape[1]} columns, the data have {width}")
    return X, Y
