"""Checks of options; errors state the expected and the given value."""

from __future__ import annotations

import math
import numbers
from reprlib import repr as shortened
from typing import Any

import numpy as np


def check_whole(least: int, **values: Any) -> None:
    """:raise ValueError: unless the option is a whole number of at least `least`."""
    for name, value in values.items():
        if not isinstance(value, numbers.Integral) or isinstance(value, bool):
            raise ValueError(f"{name} must be a whole number, got {shortened(value)}")
    check_number(least, **values)


def is_number(value: Any) -> bool:
    """:return: True for a real number, which True and False are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_number(least: float, **values: Any) -> None:
    """:raise ValueError: unless the option is a finite number of at least `least`."""
    for name, value in values.items():
        if not is_number(value):
            raise ValueError(f"{name} must be a number, got {shortened(value)}")
        if not (value >= least and abs(value) < math.inf):
            limit = "finite" if value >= least else f"at least {least}"
            raise ValueError(f"{name} must be {limit}, got {value}")


def check_rate(value: Any, name: str = "learning_rate", above: float = 0) -> float:
    """
    :return: the value of the option `name`.
    :raise ValueError: unless it is a number in (`above`, 1].
    """
    if not is_number(value) or not above < value <= 1:
        raise ValueError(f"{name} must be in ({above}, 1], got {value!r}")
    return float(value)


def check_choice(choices: tuple[Any, ...], **values: Any) -> None:
    """:raise ValueError: unless the option is one of its choices."""
    for name, value in values.items():
        if value not in choices:
            shown = ", ".join(map(repr, choices))
            raise ValueError(f"{name} must be one of {shown}, got {value!r}")


def may_hold(parameter: Any, value: Any) -> bool:
    """:return: True if shape, type and transform of a parameter or variable allow this value."""
    try:
        array = np.asarray(value, parameter.dtype.as_numpy_dtype)
    except (TypeError, ValueError, OverflowError):
        return False
    if array.shape != parameter.shape:
        return False
    transform = getattr(parameter, "transform", None)
    inside = array if transform is None else transform.inverse(array)
    return bool(np.isfinite(inside).all())


class NotFinite(ValueError):
    """The error for an ELBO that is not finite; `what` is the message without the likely cause."""

    def __init__(self, what: str, cause: str = "") -> None:
        """:param cause: the cause; "" if it is unknown."""
        likely = (
            "the kernel or the mean function overflows, or a label is invalid for the likelihood; "
            "standardize X and check the kernel's parameters"
        )
        super().__init__(f"{what}: {cause or likely}")
        self.what = what


def check_elbo(elbo: float, when: str) -> None:
    """:raise NotFinite: if the ELBO is not finite."""
    if not np.isfinite(elbo):
        raise NotFinite(f"the ELBO or its gradient is not finite {when}")
