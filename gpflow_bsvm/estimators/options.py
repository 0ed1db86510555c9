"""Valid values of the estimators' options."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from gpflow.kernels import Kernel
from sklearn.base import BaseEstimator

from ..inference.algorithm import Algorithm
from .kernels import check_kernel_name
from .specification import LOSSES, MULTI_CLASS

#: Valid names or kinds of values for each option of all estimators.
OPTIONS: dict[str, tuple[Any, ...]] = {
    "kernel": (Kernel, "linear", None),
    "loss": ("auto", *LOSSES),
    "penalty": ("a positive number", "auto"),
    "multi_class": (*MULTI_CLASS, "ordinal"),
    "epsilon": ("a positive number", "auto"),
    "nu": ("a number in (0, 1)",),
    "learn_kernel": (bool,),
    "calibrate": (bool, "auto"),
    "num_inducing": ("a whole number from 1 on", "auto"),
    "class_weight": (dict, "balanced", None),
    "inference": (Algorithm, None),
    "standardize": (bool,),
    "impute": (bool,),
    "chunk_rows": ("a whole number from 1 on", None),
    "verbose": (bool, "a whole number from 0 on"),
}


class OptionError(ValueError, TypeError):
    """An option has a wrong type or is out of range."""


def check_options(estimator: BaseEstimator) -> None:
    """
    :raise OptionError: for an invalid option.
    :raise ValueError: for a kernel of unknown name, naming an alternative.
    """
    check_kernel_name(estimator.kernel)
    for name, value in estimator.get_params(deep=False).items():
        kinds = OPTIONS.get(name)
        if kinds is not None and not any(_fits(value, kind) for kind in kinds):
            raise OptionError(f"{name} must be {' or '.join(map(_shown, kinds))}, got {value!r}")


def _fits(value: Any, kind: Any) -> bool:
    flag = isinstance(value, bool | np.bool_)
    if kind is bool:
        return flag
    if isinstance(kind, type):
        return isinstance(value, kind)
    if kind in _RANGES:
        number, low, high = _RANGES[kind]
        of_kind = isinstance(value, number) and not flag
        return of_kind and low < float(value) < high
    return value is kind if kind is None else isinstance(value, str) and value == kind


#: Open intervals of the kinds of numbers.
_RANGES: dict[Any, tuple[type, float, float]] = {
    "a positive number": (Real, 0, np.inf),
    "a number in (0, 1)": (Real, 0, 1),
    "a whole number from 0 on": (Integral, -1, np.inf),
    "a whole number from 1 on": (Integral, 0, np.inf),
}


def _shown(kind: Any) -> str:
    if kind in _RANGES:
        return str(kind)
    return kind.__name__ if isinstance(kind, type) else repr(kind)
