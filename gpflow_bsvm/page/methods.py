"""The part of a report that says how to do it again: command, settings, parameters, machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..compare.machine import provenance
from ..compare.protocol import Comparison
from ..compare.registry import BASELINES
from ..datasets import Dataset
from .markup import Markup, element, join, table

#: Arrays of more entries are summarised.
_MOST_ENTRIES = 12


def settings(shown: Sequence[Comparison], command: str) -> Markup:
    """:return: all sections."""
    first = shown[0].settings
    options = [[name, str(value)] for name, value in asdict(first).items()]
    for row in options:
        if row == ["lengthscale", "None"]:
            row[1] = "the square root of the number of features"
    parts = [element("h2", "Settings", id="settings")]
    if command:
        parts += [element("p", "The command that makes this page:"), element("pre", command)]
    parts += [
        table("Of the comparison", ["setting", "value"], options, "words"),
        table(
            "Data: the fingerprint is the same where rows, labels and their order are",
            ["data", "rows", "features", "fingerprint"],
            [_data(one.dataset) for one in shown],
        ),
        element("h3", "Methods"),
        element(
            "p",
            "Parameters of each, with what it chose or learned on the last fold, on which "
            "random_state is the seed plus the number of the fold, from 0.",
        ),
        element("div", *_methods(shown), class_="methods"),
        element("h3", "Versions and machine"),
        table(
            "Where this was computed",
            ["what", "value"],
            [[name, str(value)] for name, value in provenance().items()],
            "words",
        ),
    ]
    return join(parts, "\n")


def fingerprint(dataset: Dataset) -> str:
    """:return: 16 hexadecimal digits of X, as float64, and of the labels as text."""
    X = np.ascontiguousarray(dataset.X, "<f8").tobytes()
    labels = "\n".join(map(str, dataset.y.tolist())).encode()
    return hashlib.sha256(X + labels).hexdigest()[:16]


def _data(dataset: Dataset) -> list[str]:
    return [dataset.name, *map(str, dataset.X.shape), fingerprint(dataset)]


def _methods(shown: Sequence[Comparison]) -> list[Markup]:
    """:return: a table for each: what differs between data sets has a line for each of them."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for comparison in shown:
        for model, told in comparison.parameters().items():
            for name, value in told.items():
                of_sets = found.setdefault(model, {}).setdefault(name, {})
                of_sets[comparison.dataset.name] = as_text(value)
    tables = []
    for model, told_on in found.items():
        rows = [row for name, values in told_on.items() for row in _rows(name, values)]
        described = f": {BASELINES[model].description}" if model in BASELINES else ""
        tables.append(table(f"{model}{described}", ["parameter", "value"], rows, "words"))
    return tables


def _rows(name: str, values: dict[str, str]) -> list[list[str]]:
    if len(set(values.values())) == 1:
        return [[name, next(iter(values.values()))]]
    return [[f"{name}, {dataset}", value] for dataset, value in values.items()]


def as_text(value: Any) -> str:
    """:return: a value in one line: numbers in 4 digits, long arrays by their range."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        if value.size > _MOST_ENTRIES:
            shape = " x ".join(map(str, value.shape))
            return f"{shape} numbers from {value.min():.4g} to {value.max():.4g}"
        return ", ".join(f"{entry:.4g}" for entry in value.reshape(-1))
    if isinstance(value, (list, tuple)):
        return ", ".join(map(as_text, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return " ".join(str(value).split())
