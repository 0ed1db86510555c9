"""Tables of passes over many rows: their speed and their memory."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown


def passes(rows: pd.DataFrame) -> str:
    """Medians over repeats of the ratio within a repeat; GPflow at the best of its batch sizes."""
    wide = rows.pivot(index="repeat", columns="method", values="rows_per_s")
    ratios = wide.div(wide["CAVI"], axis=0).median()
    lines = [["matrix products of the pass alone", "-", f"{ratios['matrix products']:.2f}"]]
    for dtype in ("float32", "float64"):
        best = ratios[ratios.index.str.startswith(f"GPflow {dtype}")].idxmax()
        batch = best.rpartition(" ")[-1]
        lines.append([f"GPflow, natural gradients, {dtype}", batch, f"{ratios[best]:.2f}"])
    return markdown(["", "batch", "rows a second, those of CAVI are 1"], lines)


def resident(rows: pd.DataFrame) -> str:
    wide = rows.pivot(index="rows", columns="kind", values="most_mb")
    lines = (
        [number, *("-" if pd.isna(mb) else f"{mb:.0f}" for mb in line)]
        for number, line in zip(wide.index, wide.to_numpy())
    )
    return markdown(["rows", *wide.columns], lines)
