"""Make functions of models accept estimators and unscaled rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

import tensorflow as tf

from ..engine.contracts import Model, check_model

F = TypeVar("F", bound=Callable[..., Any])


class Fitted(Protocol):
    """A fitted estimator, such as `gpflow_bsvm.BSVMClassifier`."""

    model_: Model

    def as_model_sees(self, rows: Any, labelled: bool = True) -> Any:
        """:return: rows as the model's input: scaled, with encoded labels."""


#: Names of arguments for rows, and whether the rows have labels.
_ROWS = {"X": False, "Xnew": False, "data": True}


def takes_estimators(function: F) -> F:
    """
    :param function: a function of a model and rows.
    :return: a function that also accepts a fitted estimator, with `model_` and `as_model_sees`,
        such as `gpflow_bsvm.BSVMClassifier`, and unscaled rows.
    :raise TypeError: if called with neither.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def of_either(model: Model | Fitted, *args: Any, **options: Any) -> Any:
        if hasattr(model, "natural"):
            return function(model, *args, **options)
        if isinstance(model, tf.Module):
            check_model(model)
        if not hasattr(model, "as_model_sees"):
            raise TypeError(
                f"{function.__name__} needs a model of gpflow_bsvm.models or an estimator, "
                f"got {type(model).__name__}"
            )
        given = signature.bind(model, *args, **options)
        for name, labelled in _ROWS.items():
            if given.arguments.get(name) is not None:
                rows = given.arguments[name]
                given.arguments[name] = model.as_model_sees(rows, labelled=labelled)
        return function(model.model_, *given.args[1:], **given.kwargs)

    return cast(F, of_either)
