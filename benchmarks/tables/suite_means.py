"""Rows of a suite as means over splits: what its tables and pictures show."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from suites.wistuba2018 import NATURAL, QUICK, SOURCES

SCORES = {"error": "error", "nll": "NLL", "brier": "Brier score", "ece": "ECE"}


def complete(rows: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """
    :return: a row for each set and each of the methods, means over the splits that all of them
        were fitted to; of a method that failed in one of these NaN. Skipped fits are none.
    """
    rows = rows[rows["method"].isin(methods) & ~rows["status"].str.startswith("skipped")]
    fitted = rows.groupby(["data", "split"])["method"].transform("nunique")
    rows = rows[fitted == len(methods)]
    scores = [*SCORES, "seconds", "first_seconds"]
    means = rows.groupby(["data", "method"], sort=False)[scores].agg(
        lambda values: values.mean(skipna=False)
    )
    means = means.reset_index()
    order = means["method"].map(list(methods).index)
    return means.assign(order=order).sort_values("order", kind="stable").drop(columns="order")


def by_source(rows: pd.DataFrame) -> pd.DataFrame:
    """:return: means over the sets of the same rows, as if they were one."""
    sources = rows["data"].replace(SOURCES)
    means = rows.assign(data=sources).groupby(["data", "method"], sort=False).mean()
    return means.reset_index()


def shown(rows: pd.DataFrame) -> tuple[str, ...]:
    """:return: methods by natural gradients; RobustMax once it was fitted to as many sets."""
    sets = (complete(rows, methods)["data"].nunique() for methods in (QUICK, NATURAL))
    return NATURAL if len(set(sets)) == 1 else QUICK
