"""Known probabilities: the error of estimated ones as rows grow."""

from __future__ import annotations

import store
from matplotlib.figure import Figure

from gpflow_bsvm.plotting import figure

ROWS = ("consistency",)
TICKS = (0.02, 0.03, 0.05, 0.1, 0.2)


def draw() -> Figure:
    rows = store.read("consistency")
    fig, axes = figure(1, 4, width=3.4)
    for ax, ((inputs, classes), group) in zip(axes, rows.groupby(["inputs", "classes"])):
        for number, (method, line) in enumerate(group.groupby("method", sort=False)):
            style = {"linewidth": 2.4} if method == "bsvm" else {"linewidth": 1.2}
            ax.plot(
                line["n"], line["rmse"], marker="o", ms=4, color=f"C{number}", label=method, **style
            )
        ax.set(
            xscale="log", yscale="log", xlabel="rows", title=f"{inputs} inputs, {classes} classes"
        )
    for ax in axes:
        ax.set_xticks(rows["n"].unique(), rows["n"].unique())
        ax.set_yticks(TICKS, TICKS)
        ax.set_ylim(0.9 * rows["rmse"].min(), 1.1 * rows["rmse"].max())
        ax.minorticks_off()
    axes[0].set(ylabel="root mean square error of p")
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False)
    return fig
