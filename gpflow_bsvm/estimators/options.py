"""The estimators' options: valid values, and the core's warnings reworded in their terms."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from gpflow.kernels import Kernel, MultioutputKernel
from sklearn.base import BaseEstimator

from ..inference.algorithm import Algorithm
from .specification import LOSSES, MULTI_CLASS

#: Names of kernels in scikit-learn.
_INSTEAD = {
    "rbf": '; for scikit-learn\'s "rbf" use None',
    "poly": '; for scikit-learn\'s "poly" use gpflow.kernels.Polynomial(degree=3, offset=1.0)',
    "sigmoid": '; "sigmoid" is not a valid kernel: use gpflow.kernels.ArcCosine(order=0)',
    "precomputed": "; a Gram matrix lacks the variances of new rows: give the kernel itself",
}
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
    "num_inducing": ("a whole number of at least 1", "auto"),
    "class_weight": (dict, "balanced", None),
    "inference": (Algorithm, None),
    "standardize": (bool,),
    "impute": (bool,),
    "chunk_rows": ("a whole number of at least 1", None),
    "verbose": (bool, "a whole number of at least 0"),
}


class OptionError(ValueError, TypeError):
    """An option has a wrong type or is out of range."""


def check_options(estimator: BaseEstimator) -> None:
    """
    :raise OptionError: for an invalid option.
    :raise ValueError: for a kernel of several outputs, or an unknown name; the message suggests an
        alternative.
    """
    kernel = estimator.kernel
    if isinstance(kernel, MultioutputKernel):
        raise ValueError(
            "kernel must have one output, which all latent functions share, got "
            f"{type(kernel).__name__}: give one of its kernels, or use gpflow_bsvm.models.BSVM"
        )
    if isinstance(kernel, str) and kernel != "linear":
        raise ValueError(
            f'kernel must be a GPflow kernel, None or "linear", got {kernel!r}'
            f"{_INSTEAD.get(kernel, '')}"
        )
    for name, value in estimator.get_params(deep=False).items():
        kinds = OPTIONS.get(name)
        if kinds is not None and not any(_fits(value, kind) for kind in kinds):
            words = [k if k in _RANGES else getattr(k, "__name__", repr(k)) for k in kinds]
            raise OptionError(f"{name} must be {' or '.join(words)}, got {value!r}")


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
    "a whole number of at least 0": (Integral, -1, np.inf),
    "a whole number of at least 1": (Integral, 0, np.inf),
}


#: Beginnings of messages from the core, and their replacements.
SAID = {
    "the fit has learned next to nothing": (
        "the fit has learned next to nothing, and predicts nearly the same for all rows: its "
        "kernel has collapsed, or does not suit X; try learn_kernel=False, a larger penalty, a "
        "kernel=... whose variance is near 4, or more rows"
    ),
    "float64 does not hold this q": (
        "labels without noise, or a kernel with a very large variance, determine f to more digits "
        "than float64 has: predictions and their uncertainty are rounded"
    ),
    "the inducing points explain": (
        "the first call of partial_fit had too few rows, or rows unlike these: its inducing points "
        "hardly determine f here, so these rows change little; begin with more rows, or fit to all"
    ),
    "most y are": (
        'most y are far outside of their error bars: leave penalty and epsilon at "auto", or give '
        "penalty in units of 1 / y, epsilon in units of y; begin partial_fit with all kinds of y"
    ),
    "all inducing points are many lengthscales apart": (
        "the inducing points are many lengthscales apart, so nothing can be predicted "
        "between them: use a larger num_inducing or lengthscales, and leave standardize=True"
    ),
    "all inducing points are perfectly correlated": (
        "the kernel hardly distinguishes rows, so predictions are the same for all: give a "
        "kernel=... with smaller lengthscales, and leave standardize=True, unless this is intended"
    ),
    "the fit has not converged": (
        "the fit has not converged: give a larger max_steps or tol with inference=..."
    ),
    "y has almost no noise": (
        "y has almost no noise, or the kernel's variance is far larger than the variance of y "
        "(leave standardize=True): error bars are rounded, predictions are not affected"
    ),
    "no step was found": (
        "no step was found that raises the bound, and the fit has not converged: leave bound and "
        "inference at their defaults, or set a smaller learning_rate with inference=..."
    ),
    "Kuu needed a jitter": (
        "the kernel's matrix is singular up to rounding, because the kernel hardly distinguishes "
        "some rows; a small noise was added: use a smaller num_inducing, or shorter lengthscales"
    ),
}


def in_words_of_estimators(text: str) -> str:
    """:return: the message, reworded in terms of the estimator's parameters."""
    return next((said for begins, said in SAID.items() if text.startswith(begins)), text)
