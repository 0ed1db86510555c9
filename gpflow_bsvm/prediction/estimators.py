"""A decorator that lets functions of models also accept estimators, with unscaled rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import tensorflow as tf

from ..engine.contracts import check_model

F = TypeVar("F", bound=Callable[..., Any])
Convert = Callable[[Any, float, float], Any]

#: Names of arguments for rows, and whether the rows have labels.
_ROWS = {"X": False, "Xnew": False, "data": True}


def of_f(f: Any, scale: float, center: float) -> Any:
    """:return: values of f in units of y."""
    return f * scale + center


def of_variance(variance: Any, scale: float, center: float) -> Any:
    """:return: variances of f in squared units of y."""
    return variance * scale**2


def of_moments(f: Any, scale: float, center: float) -> Any:
    """:return: mean and variance of f in units of y."""
    mean, variance = f
    return of_f(mean, scale, center), of_variance(variance, scale, center)


def of_log_density(log_p: Any, scale: float, center: float) -> Any:
    """:return: log densities of y."""
    return log_p - np.log(scale)


def in_units_of_y(
    convert: Convert | None = None, *, of_classes: bool = False, by_class: bool = False
) -> Callable[[F], F]:
    """
    :param convert: a function that converts a regressor's result to units of y, given scale and
        center of y; None if the result has no such units.
    :param of_classes: whether the function needs probabilities of classes, which an estimator may
        lack until it is calibrated.
    :param by_class: whether the result's last axis is classes, which follow `classes_`.
    :return: a decorator for functions of a model and rows. These then also accept a fitted
        estimator with unscaled rows, such as `gpflow_bsvm.BSVMRegressor`. An estimator needs
        `model_`, `as_model_sees`, `weights_in_fit`, and `units_of_y` if it standardizes y; other
        objects raise a TypeError.
    """

    def decorated(function: F) -> F:
        signature = inspect.signature(function)

        @wraps(function)
        def of_either(model: Any, *args: Any, **options: Any) -> Any:
            if hasattr(model, "natural"):
                return function(model, *args, **options)
            _check_estimator(model, function.__name__)
            if of_classes and hasattr(model, "check_calibrated"):
                model.check_calibrated()
            given = signature.bind(model, *args, **options)
            _convert_rows(model, given)
            answer = function(model.model_, *given.args[1:], **given.kwargs)
            if by_class and hasattr(model, "_columns") and answer.shape[-1] > 1:
                answer = np.take(answer, model._columns, axis=-1)
            units = getattr(model, "units_of_y", (1.0, 0.0))
            return convert(answer, *units) if convert else answer

        return cast(F, of_either)

    return decorated


def _check_estimator(estimator: Any, asks: str) -> None:
    if isinstance(estimator, tf.Module):
        check_model(estimator)
    if not hasattr(estimator, "as_model_sees"):
        raise TypeError(
            f"{asks} needs a model of gpflow_bsvm.models or an estimator, "
            f"got {type(estimator).__name__}"
        )


def _convert_rows(estimator: Any, given: inspect.BoundArguments) -> None:
    """Replace rows, labels and weights by the inputs of the estimator's model."""
    for name, labelled in _ROWS.items():
        rows = given.arguments.get(name)
        if rows is None:
            continue
        weight = given.arguments.get("sample_weight")
        seen = estimator.as_model_sees(rows, labelled=labelled, sample_weight=weight)
        given.arguments[name] = seen
        if labelled and "sample_weight" in given.signature.parameters:
            given.arguments["sample_weight"] = estimator.weights_in_fit(rows, weight)


takes_estimators = in_units_of_y()
takes_classifiers = in_units_of_y(of_classes=True)
