"""What labels of rows that are not in memory are to a model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from sklearn.utils.class_weight import compute_class_weight

from .inputs import number


class ClassNumbers(NamedTuple):
    """Classes, numbered."""

    values: AnyNDArray  #: [C], as the source has them
    weights: AnyNDArray  #: [C], of rows of each

    def __call__(self, Y: AnyNDArray) -> tuple[AnyNDArray, Any]:
        """:return: labels [n, 1] as the model has them, and factors of the rows' weights."""
        index = number(Y, self.values)
        return index, self.weights[index]


class Standardised(NamedTuple):
    """Numbers, less a center, in units of a scale."""

    center: float = 0.0
    scale: float = 1.0

    def __call__(self, Y: AnyNDArray) -> tuple[AnyNDArray, Any]:
        """:return: labels and factors, as `ClassNumbers`."""
        return (Y - self.center) / self.scale, 1.0


class Ones(NamedTuple):
    """Rows of one class, whatever their labels."""

    def __call__(self, Y: AnyNDArray) -> tuple[AnyNDArray, Any]:
        """:return: labels and factors, as `ClassNumbers`."""
        return np.ones((len(Y), 1)), 1.0


def label_names(rows: Any, values: AnyNDArray) -> AnyNDArray:
    """:return: [C], what the numbers stand for: those of files may have names."""
    names, whole = getattr(rows, "classes", None), values.astype(int)
    return whole if names is None else np.asarray(names)[whole]


def label_values(rows: Any, classes: AnyNDArray) -> AnyNDArray:
    """:return: [C], what each class is called in the rows; -1 where they do not know it."""
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


def class_weights(counts: AnyNDArray | None, classes: AnyNDArray, wanted: Any) -> AnyNDArray:
    """
    :param counts: [C], rows of each class; None where `wanted` is not "balanced".
    :return: [C], as scikit-learn's `class_weight` says.
    """
    if wanted is None:
        return np.ones(len(classes))
    if wanted == "balanced" and counts is not None:
        return np.asarray(counts.sum() / (len(classes) * counts))
    return np.asarray(compute_class_weight(wanted, classes=classes, y=classes))
