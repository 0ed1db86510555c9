"""The family: error against training time, and what q gives away."""

from __future__ import annotations

import numpy as np
import pandas as pd
import store
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpflow_bsvm.plotting import figure

ROWS = ("runtime", "draws")
SHOWN = {
    "S-BSVM, exact, CAVI": "C0",
    "S-BSVM, exact, SVI 10": "C1",
    "SVGP, natural gradients 0.01, batch 10": "C2",
    "SVGP, natural gradients 0.1, batch 10": "C3",
    "ECM (batch)": "C4",
    "B-BSVM, augmented": "C5",
    "GaussianProcessClassifier": "C6",
    "SVC": "C7",
}


def draw() -> Figure:
    fig, (left, right) = figure(1, 2, width=6.5)
    _runtime(left, store.read("runtime"))
    _deviations(right, store.read("draws"))
    return fig


def _runtime(ax: Axes, rows: pd.DataFrame) -> None:
    unit = rows.loc[rows["method"] == "S-BSVM, exact, CAVI", "seconds"].max()
    for method, color in SHOWN.items():
        group = rows[rows["method"] == method]
        smooth = group["error"].rolling(5, min_periods=1).mean() if len(group) > 20 else group.error
        marker = "o" if len(group) < 10 else None
        ax.plot(group["seconds"] / unit, smooth, color=color, label=method, marker=marker, ms=4)
    ax.set(
        xscale="log",
        ylim=(0.08, 0.16),
        xlabel="training time; that of S-BSVM by CAVI is 1",
        ylabel="error on held-out rows",
        title="waveform, 2000 rows",
    )
    ax.legend(fontsize=7)


def _deviations(ax: Axes, rows: pd.DataFrame) -> None:
    wide = rows.pivot(index="data", columns="method", values="deviation_ratio")
    methods = ["q, augmented", "q, exact", "HMC"]
    for n, method in enumerate(methods):
        ax.bar(np.arange(len(wide)) + 0.27 * (n - 1), wide[method], 0.25, label=method)
    ax.axhline(1, color="0.5", linewidth=1)
    ax.set_xticks(range(len(wide)), wide.index, rotation=20)
    ax.set(ylim=(0.5, 1.15), ylabel="deviation of f, Gibbs is 1", title="what q gives away")
    ax.legend(fontsize=8, loc="upper left", ncol=3)
