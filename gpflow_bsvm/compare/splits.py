"""Labels as classes 0..C-1, and the folds shared by all models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from gpflow.base import AnyNDArray
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ..datasets import Dataset
from ..estimators.labels import number
from ..inducing_points.points import kmeans
from ..tables.labels import check_are_classes


@dataclass(frozen=True)
class Fold:
    """
    :ivar X: [n, D], standardized training rows; y: [n]; Z: [M, D].
    :ivar X_test: [N - n, D], scaled like X; y_test: [N - n].
    :ivar test: [N - n], indices of test rows in the data.
    """

    number: int
    X: AnyNDArray
    y: AnyNDArray
    Z: AnyNDArray
    X_test: AnyNDArray
    y_test: AnyNDArray
    test: AnyNDArray


def folds(
    X: AnyNDArray, y: AnyNDArray, num_folds: int = 10, seed: int = 0, num_inducing: int = 100
) -> Iterator[Fold]:
    """
    Yield folds of shuffled rows, scaled by their training part and, for classes, stratified.

    :param X: [N, D]; y: [N], in 0..C-1 (see `class_labels`), or floats, which are standardized with
        the training part.
    :param seed: seed of the shuffle; the inducing points of fold k use seed + k.
    :param num_inducing: maximum number of inducing points, found by k-means on the training part;
        fewer distinct rows give fewer points.
    """
    numbers = y.dtype.kind == "f"
    splits = (KFold if numbers else StratifiedKFold)(num_folds, shuffle=True, random_state=seed)
    for fold, (train, test) in enumerate(splits.split(X, y)):
        scaler = make_scaler().fit(X[train])
        X_train = scaler.transform(X[train])
        most = min(num_inducing, len(np.unique(X_train, axis=0)))
        Z = kmeans(X_train, most, seed=seed + fold)
        labels = (y - y[train].mean()) / (y[train].std() or 1.0) if numbers else y
        X_test = scaler.transform(X[test])
        yield Fold(fold, X_train, labels[train], Z, X_test, labels[test], test)


def make_scaler() -> Pipeline:
    """:return: a pipeline that replaces missing values by medians and standardizes columns."""
    medians = SimpleImputer(strategy="median", keep_empty_features=True)
    return make_pipeline(medians, StandardScaler())


def class_labels(dataset: Dataset) -> tuple[AnyNDArray, AnyNDArray]:
    """
    :return: labels [C], sorted or in the order of their type, and y [N], their indices.
    :raise ValueError: for a single label, or labels that look like a regression target.
    """
    labels = np.array(dataset.order) if dataset.order else np.unique(dataset.y)
    check_are_classes(labels.tolist(), len(dataset.y), dataset.name)
    return labels, number(dataset.y, labels)


def check_counts(name: str, labels: AnyNDArray, counts: AnyNDArray, folds: int) -> None:
    """
    :param labels: [C]; counts: [C] rows.
    :raise ValueError: unless every class has a row for every fold.
    """
    few = np.count_nonzero(counts < folds)
    fewest = counts.min()
    if few == 0:
        return
    others = f" (one of {few} such classes)" if few > 1 else ""
    advice = f"at most {fewest} folds are possible" if fewest > 1 else "at least 2 are needed"
    raise ValueError(
        f"{name} has {fewest} row(s) of class {labels[counts.argmin()]!s}{others}, too few for "
        f"{folds} folds: {advice}"
    )
