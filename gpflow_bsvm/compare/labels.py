"""Labels of any kind as classes 0..C-1, or why they are none."""

from __future__ import annotations

import numpy as np
from gpflow.base import AnyNDArray

from ..datasets import DataError, Dataset


def class_labels(dataset: Dataset) -> tuple[AnyNDArray, AnyNDArray]:
    """
    :return: labels [C] in sorted order, and y [N] in 0..C-1 by that order.
    :raise DataError: for a single label, or so many that they look like numbers to be regressed.
    """
    labels, y = np.unique(dataset.y, return_inverse=True)
    if len(labels) < 2:
        raise DataError(f"{dataset.name} has one class only ({labels[0]!s})")
    if len(labels) > max(2, len(y) / 2):
        raise DataError(
            f"{dataset.name} has {len(labels)} different labels in {len(y)} rows, as numbers to be "
            "regressed have; the comparison is of classifiers"
        )
    return labels, np.asarray(y.reshape(-1))


def check_counts(name: str, labels: AnyNDArray, counts: AnyNDArray, folds: int) -> None:
    """
    :param labels: [C]; counts: [C] rows.
    :raise DataError: unless every class has a row for every fold.
    """
    few, fewest = np.count_nonzero(counts < folds), counts.min()
    if few == 0:
        return
    others = f" (one of {few} such classes)" if few > 1 else ""
    advice = f"at most {fewest} folds are possible" if fewest > 1 else "2 are needed"
    raise DataError(
        f"{name} has {fewest} row(s) of class {labels[counts.argmin()]!s}{others}, too few for "
        f"{folds} folds; {advice}"
    )
