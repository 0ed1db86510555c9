"""How long the suites take, by their rows."""

from __future__ import annotations

import importlib

import pandas as pd

from .markdown import markdown

#: In the order in which `draw.py` gives their rows.
SUITES = ("wenzel2016", "wenzel2017", "wistuba2018")


def suite_times(*suites: pd.DataFrame) -> str:
    """Processor minutes of the rows that there are, and how many of the plan these are."""
    lines = []
    for name, rows in zip(SUITES, suites):
        plan = importlib.import_module(f"suites.{name}").SUITE
        planned = {(data, *fit) for data, fits in plan.work(smoke=False) for fit in fits}
        bad = rows["status"].str.startswith("failed").sum()
        minutes = rows[["seconds", "first_seconds"]].sum() / 60
        cells = (f"{part:.1f}" for part in minutes)
        longest = rows.loc[rows["seconds"].idxmax()]
        fit = f"{longest['data']}, {longest['method']}: {longest['seconds'] / 60:.1f}"
        lines.append([name, f"{len(rows)} of {len(planned)}", bad, *cells, fit])
    header = ["suite", "fits", "failed", "minutes in fits", "in tracing", "longest fit, minutes"]
    return markdown(header, lines)
