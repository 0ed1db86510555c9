"""How long the suites take, by their rows."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd

from .markdown import markdown, shows

SUITES = ("wenzel2016", "wenzel2017", "wistuba2018")


@shows(*SUITES)
def suite_times(*suites: pd.DataFrame) -> str:
    """
    Processor minutes of the rows that there are, and what the rest of the plan would take: a fit as
    much as the same method took on other splits of the same set. Of others nothing is known.
    """
    lines = []
    for name, rows in zip(SUITES, suites):
        fits, rest = _planned(name), _rest(name, rows)
        done = (f"{part:.1f}" for part in rows[["seconds", "first_seconds"]].sum() / 60)
        failed = rows["status"].str.startswith("failed").sum()
        longest = rows.loc[rows["seconds"].idxmax()]
        dearest = f"{longest['data']}, {longest['method']}: {longest['seconds'] / 60:.1f}"
        known, unknown = f"{rest.sum():.0f}", rest.isna().sum()
        lines.append([name, f"{len(rows)} of {len(fits)}", failed, *done, dearest, known, unknown])
    header = ["suite", "fits", "failed", "minutes in fits", "in tracing", "longest fit, minutes"]
    return markdown([*header, "the others, estimated minutes", "fits of unknown time"], lines)


def _planned(name: str) -> set[tuple[str, int, str]]:
    plan = importlib.import_module(f"suites.{name}").SUITE
    return {(data, *fit) for data, fits in plan.work(smoke=False) for fit in fits}


def _rest(name: str, rows: pd.DataFrame) -> pd.Series:
    """:return: minutes of each fit without a row; NaN where no other split is a guide."""
    means = rows.groupby(["data", "method"])["seconds"].mean() / 60
    missing = _planned(name) - set(zip(rows["data"], rows["split"], rows["method"]))
    guessed = [means.get((data, method), np.nan) for data, _, method in sorted(missing)]
    return pd.Series(guessed, dtype=float)
