"""What the parameters of estimators may be; scikit-learn wants them checked by `fit`."""

from __future__ import annotations

from numbers import Integral, Real
from types import NoneType
from typing import Any

import numpy as np
from gpflow.kernels import Kernel

from .specification import LOSSES, MULTI_CLASS

#: Types and strings that each may be, and in words. Values are checked where they are used.
_CHOICES: dict[str, tuple[tuple[Any, ...], str]] = {
    "kernel": ((NoneType, Kernel, "linear"), 'a GPflow kernel, None or "linear"'),
    "loss": (("auto", *LOSSES), '"auto", "levels" or "hinge"'),
    "penalty": ((Real, "auto"), 'a positive number or "auto"'),
    "multi_class": ((*MULTI_CLASS, "ordinal"), f"one of {(*MULTI_CLASS, 'ordinal')}"),
    "epsilon": ((Real, "auto"), 'a positive number or "auto"'),
    "nu": ((Real,), "a number in (0, 1)"),
    "learn_kernel": ((bool, np.bool_), "True or False"),
    "calibrate": ((bool, np.bool_, "auto"), 'True, False or "auto"'),
    "standardize": ((bool, np.bool_), "True or False"),
    "impute": ((bool, np.bool_), "True or False"),
    "verbose": ((bool, np.bool_, Integral), "True or False"),
    "num_inducing": ((Integral, "auto"), 'a whole number or "auto"'),
    "chunk_rows": ((Integral, NoneType), "a whole number or None"),
    "inference": ((NoneType,), "an algorithm such as gpflow_bsvm.inference.CAVI(), or None"),
}


#: Of scikit-learn's names of kernels.
_INSTEAD = {
    "rbf": '; for scikit-learn\'s "rbf" use None',
    "poly": '; for scikit-learn\'s "poly" use gpflow.kernels.Polynomial(degree=3, offset=1.0)',
    "sigmoid": '; scikit-learn\'s "sigmoid" is no covariance: gpflow.kernels.ArcCosine(order=0) is',
    "precomputed": "; a Gram matrix says nothing of new rows' variance: give the kernel itself",
}


#: Where fits are alike whatever these are.
_NEUTRAL = ("verbose", "chunk_rows")


def what_matters(estimator: Any) -> dict[str, Any]:
    """:return: parameters that a fit depends on."""
    found = {k: v for k, v in estimator.get_params(deep=False).items() if k not in _NEUTRAL}
    if isinstance(estimator.random_state, np.random.RandomState):
        _, keys, position, *_ = estimator.random_state.get_state()
        found["random_state"] = np.append(keys, position)
    return found


def check_parameters(estimator: Any) -> None:
    """
    :raise TypeError: for a parameter of another type, such as a class where an object is meant.
    :raise ValueError: for an unknown string where there are known ones.
    """
    for name, value in estimator.get_params(deep=False).items():
        if name not in _CHOICES:
            continue
        choices, expected = _CHOICES[name]
        types = tuple(choice for choice in choices if isinstance(choice, type))
        fits = isinstance(value, types) and (bool in types or not isinstance(value, bool))
        fits |= isinstance(value, str) and value in choices
        fits |= name == "inference" and hasattr(value, "run") and not isinstance(value, type)
        if not fits:
            unknown = isinstance(value, str) and len(types) < len(choices)
            hint = _INSTEAD.get(value, "") if unknown and name == "kernel" else ""
            hint += f"; write {value.__name__}()" if isinstance(value, type) else ""
            error = ValueError if unknown else TypeError
            raise error(f"{name} must be {expected}, got {value!r}{hint}")
