"""Hybrids and softmax networks: error and NLL on test rows against processor time."""

from __future__ import annotations

import pandas as pd
import store
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpflow_bsvm.plotting import figure

ROWS = ("hybrid",)
NAMES = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10_jpeg_12k": "CIFAR-10, 10 000 rows",
}
LINES = {"softmax, by epoch": ("C1", "softmax"), "hybrid, by epoch": ("C0", "hybrid")}
POINTS = {
    "softmax, temperature": ("C1", "s"),
    "hybrid, frozen": ("C2", "^"),
    "hybrid, warm": ("C4", "D"),
    "hybrid": ("C0", "o"),
}
NAMED = {"hybrid": "hybrid, at its end"}


def draw() -> Figure:
    rows = store.read("hybrid")
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
    for seed, own in rows.groupby("seed"):
        unit = own.loc[own["method"] == "softmax, by epoch", "seconds"].max()
        by_method = dict(list(own.groupby("method")))
        for method, (color, label) in LINES.items():
            group = by_method[method]
            label = "_" if seed else label
            ax.plot(group["seconds"] / unit, group[score], color=color, label=label, alpha=0.7)
        for method, (color, marker) in POINTS.items():
            end = by_method[method].iloc[-1]
            label = "_" if seed else NAMED.get(method, method)
            style = {"color": color, "marker": marker, "ls": "", "label": label, "ms": 4}
            ax.plot(end["seconds"] / unit, end[score], **style)
    best = rows.loc[rows["method"] == "softmax", score].min()
    ax.set_ylim(0, 2.5 * best)
