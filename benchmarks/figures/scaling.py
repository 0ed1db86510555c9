"""Time of a pass over the data against rows, inducing points and columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import store
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpflow_bsvm.plotting import figure

ROWS = ("scaling",)
LABELS = {"rows": "rows N", "points": "inducing points M", "columns": "columns D"}


def draw() -> Figure:
    rows = store.read("scaling")
    fig, axes = figure(1, 3)
    for ax, (along, label) in zip(axes, LABELS.items()):
        part = rows[rows["along"] == along]
        sizes = ["rows", "points", "columns"]
        _draw(ax, part.groupby(sizes, as_index=False)["seconds"].median(), along)
        ax.set(xscale="log", yscale="log", xlabel=label)
    axes[0].set(ylabel="seconds of a pass")
    axes[0].legend(fontsize=8)
    return fig


def _draw(ax: Axes, line: pd.DataFrame, along: str) -> None:
    line = line.sort_values(along)
    x, seconds = line[along], line["seconds"]
    ax.plot(x, seconds, "o-", color="C0", label="measured")
    N, M, D = (line[name] for name in ("rows", "points", "columns"))
    # X Z^T, then Lz^-1 and R, both triangular but multiplied as they are, and the sum of P.
    theory = N * M * (D + 3 * M)
    ax.plot(x, theory / theory.iloc[-1] * seconds.iloc[-1], "k--", lw=1, label="N M (D + 3 M)")
    ax.set_ylim(0.5 * np.min(seconds), 2 * np.max(seconds))
