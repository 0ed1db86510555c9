"""Which multi-class sets of the data directory are the same data twice.

Compared are sets whose numbers of rows differ by less than 1 %. A column is known by how often each
of its values is met with each label, up to 1 % of the rows, whatever labels and few values are
called and however rows are ordered; so is "this value or another" for the values of a column of
few, by which one-hot columns are found. `found` counts the columns of the second set, constant ones
left out, that the first has.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np
import pandas as pd

from gpflow_bsvm.datasets import data_directory

from ._common import numbered

NEAR, FEW_VALUES, FEW_LABELS = 0.01, 12, 3


def run() -> Iterator[dict]:
    about = pd.read_csv(data_directory() / "MANIFEST.csv")
    sizes = about[about["task"] == "multiclass"].set_index("name")["n"]
    near = [
        (one, two)
        for one, two in combinations(sizes.index, 2)
        if abs(sizes[one] - sizes[two]) <= NEAR * sizes[one]
    ]
    sets = {name: numbered(f"multiclass/{name}") for name in sorted({*sum(near, ())})}
    known = {name: (_columns(X, y, True), _columns(X, y)) for name, (X, y) in sets.items()}
    for one, two in near:
        labels = [np.sort(np.bincount(sets[name][1])) for name in (one, two)]
        for first, second in ((one, two), (two, one)):
            columns = known[second][1]
            yield {
                "first": first,
                "second": second,
                "n_first": sizes[first],
                "n_second": sizes[second],
                "same_labels": np.array_equal(*labels),
                "columns": len(columns),
                "found": sum(
                    any(_alike(column, other) for other in known[first][0]) for column in columns
                ),
            }


def _columns(X: np.ndarray, y: np.ndarray, indicators: bool = False) -> list[np.ndarray]:
    found = []
    for x in X.T:
        values = np.unique(x)
        if len(values) == 1:
            continue
        found.append(_known_by(x, y))
        if indicators and 2 < len(values) <= FEW_VALUES:
            found += [_known_by((x == value).astype(float), y) for value in values]
    return found


def _known_by(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """:return: counts of values and labels; few values by their counts, others by their order."""
    values = np.unique(x, return_inverse=True)[1]
    table = np.zeros((values.max() + 1, y.max() + 1), int)
    np.add.at(table, (values, y), 1)
    table = table[:, np.argsort(table.sum(axis=0), kind="stable")]
    return table if len(table) > FEW_VALUES else table[np.argsort(table.sum(axis=1), kind="stable")]


def _alike(one: np.ndarray, two: np.ndarray) -> bool:
    """:return: but for so few rows as the sets may differ by; few labels in any order."""
    if one.shape != two.shape:
        return False
    labels = range(one.shape[1])
    orders = permutations(labels) if len(labels) <= FEW_LABELS else [labels]
    return any(np.abs(one[:, list(order)] - two).sum() <= NEAR * one.sum() for order in orders)
