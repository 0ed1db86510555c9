"""Hybrids and softmax networks: error and NLL on test rows against processor time."""

from __future__ import annotations

import pandas as pd
import store
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpflow_bsvm.plotting import figure

ROWS = ("hybrid_earlier",)
NAMES = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10_jpeg_12k": "CIFAR-10, 10 000 rows",
}
LINES = {"softmax": ("C1", "softmax"), "hybrid, before CAVI": ("C0", "hybrid")}
POINTS = {
    "softmax, temperature": ("C1", "s"),
    "hybrid, frozen": ("C2", "^"),
    "hybrid, warm": ("C4", "D"),
    "hybrid": ("C0", "o"),
}


def draw() -> Figure:
    rows = store.read("hybrid_earlier")
    fig, axes = figure(2, len(NAMES), width=3.4)
    for n, name in enumerate(NAMES):
        group = rows[rows["data"] == name]
        top, bottom = axes[n], axes[n + len(NAMES)]
        _curves(top, group, "error")
        _curves(bottom, group, "nll")
        top.set_title(NAMES[name])
        bottom.set_xlabel("processor time; softmax is 1")
    axes[0].set_ylabel("error on test rows")
    axes[len(NAMES)].set_ylabel("NLL on test rows")
    axes[0].legend(fontsize=7)
    return fig


def _curves(ax: Axes, rows: pd.DataFrame, score: str) -> None:
    unit = rows.loc[rows["method"] == "softmax", "seconds"].max()
    for method, (color, label) in LINES.items():
        group = rows[rows["method"] == method]
        ax.plot(group["seconds"] / unit, group[score], color=color, label=label)
    for method, (color, marker) in POINTS.items():
        end = rows[rows["method"] == method].iloc[-1]
        label = "hybrid, then CAVI" if method == "hybrid" else method
        ax.plot(end["seconds"] / unit, end[score], color=color, marker=marker, ls="", label=label)
    best = rows.loc[rows["method"] == "softmax", score].min()
    ax.set_ylim(0, 2.5 * best)
