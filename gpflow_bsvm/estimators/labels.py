"""Encodings of a user's labels as those of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from .inputs import number

#: A function from labels [n, 1] to those of the model, and factors of the rows' weights.
Encoding = Callable[[AnyNDArray], tuple[AnyNDArray, Any]]


def numbered(Y: AnyNDArray, values: AnyNDArray, weights: AnyNDArray) -> tuple[AnyNDArray, Any]:
    """
    :param values: [C], the classes in the rows; weights: [C], for the rows of each.
    :return: numbers of classes, and weights.
    """
    index = number(Y, values)
    return index, weights[index]


def standardised(Y: AnyNDArray, center: float = 0.0, scale: float = 1.0) -> tuple[AnyNDArray, Any]:
    """:return: numbers less a center, in units of a scale."""
    return (Y - center) / scale, 1.0


def ones(Y: AnyNDArray) -> tuple[AnyNDArray, Any]:
    """:return: ones, for rows of one class, whatever their labels."""
    return np.ones((len(Y), 1)), 1.0


def label_names(rows: Any, values: AnyNDArray) -> AnyNDArray:
    """:return: [C], the labels that the numbers stand for: those of files may have names."""
    names, whole = getattr(rows, "classes", None), values.astype(np.int64)
    return whole if names is None else np.asarray(names)[whole]


def label_values(rows: Any, classes: AnyNDArray) -> AnyNDArray:
    """:return: [C], the label of each class in the rows; -1 if they do not have it."""
    names = getattr(rows, "classes", None)
    if names is None and classes.dtype.kind not in "fiub":
        raise ValueError(
            f"the classes are {classes.tolist()}, and these labels are numbers: give the source "
            "classes=..., their names in the order of the numbers"
        )
    if names is None:
        return classes
    if unknown := [name for name in names if name not in classes.tolist()]:
        raise ValueError(
            f"the source has classes {unknown}; the classes are {classes.tolist()}: fit anew with "
            "rows of all of them"
        )
    return np.array([names.index(one) if one in names else -1 for one in classes.tolist()])
