"""Figures 2 and 3 of Wistuba and Rawat (2018): accuracies in pairs, times; and mean ranks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import store
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from ranking import critical_colors, critical_difference, wide
from tables.suite_means import complete, shown

from gpflow_bsvm.plotting import figure

ROWS = ("wistuba2018",)
OURS = "bsvm"
#: A mark for each of the others.
MARKS = {"one-vs-rest": "o", "svgp": "s", "svgp-robustmax": "D", "svc": "^"}
#: Of seconds.
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10)


def draw() -> Figure:
    rows = store.read(*ROWS)
    means = complete(rows, shown(rows))
    errors, seconds = wide(means, "error"), wide(means, "seconds")
    fig, axes = figure(2, 2, height=3.4)
    _accuracies(axes[0], 1 - errors, ["one-vs-rest"])
    _accuracies(axes[1], 1 - errors, [name for name in errors if name.startswith("svgp")])
    _times(axes[2], seconds)
    critical_difference(axes[3], errors)
    axes[3].set_title("mean rank in error")
    fig.suptitle(f"{len(errors)} sets, the same lengthscale for all, M = 64 (svc: all rows)")
    return fig


def _accuracies(ax: Axes, table: pd.DataFrame, others: list[str]) -> None:
    """A point for each set: above the line the multi-class machine is the more accurate."""
    colors = critical_colors(table)
    for name in others:
        won = int((table[OURS] > table[name]).sum())
        lost = int((table[OURS] < table[name]).sum())
        about = {"label": f"{name}: {won} above, {lost} below", "color": colors[name]}
        ax.plot(table[name], table[OURS], MARKS[name], markersize=4, alpha=0.6, **about)
    low = float(np.nanmin(table[[OURS, *others]].to_numpy())) - 0.02
    ax.plot([low, 1], [low, 1], color="0.6", linewidth=0.8, zorder=0)
    ax.set(xlabel="accuracy of the other", ylabel=f"accuracy of {OURS}")
    ax.legend(fontsize=8, frameon=False, loc="upper left")


def _times(ax: Axes, table: pd.DataFrame) -> None:
    colors = critical_colors(table)
    for name in (name for name in MARKS if name in table):
        about = {"label": name, "color": colors[name], "markersize": 4, "alpha": 0.6}
        ax.plot(table[OURS], table[name], MARKS[name], **about)
    ends = [table.to_numpy()[np.isfinite(table.to_numpy())].min(), table[OURS].max()]
    ax.plot(ends, ends, color="0.6", linewidth=0.8, zorder=0)
    ax.set(xscale="log", yscale="log", xlabel=f"processor seconds of a fit, {OURS}")
    ax.set(ylabel="processor seconds of the other")
    ax.set_xticks(TICKS[1:-1], TICKS[1:-1])
    ax.set_yticks(TICKS, TICKS)
    ax.minorticks_off()
    ax.set_ylim(top=50)  # room for the legend
    ax.legend(fontsize=8, frameon=False, loc="upper left")
