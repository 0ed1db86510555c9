"""Several classes: what the published objective does, error against time, cost of a step."""

from __future__ import annotations

import pandas as pd
import store
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpflow_bsvm.plotting import figure

ROWS = ("published", "multiclass", "classes")


def draw() -> Figure:
    fig, (gaps, sweeps, errors, costs) = figure(2, 2)
    published = store.read("published")
    _gaps(gaps, published[published["kind"] == "gap"])
    _sweeps(sweeps, published[published["kind"] == "sweep 4, 8"])
    _errors(errors, store.read("multiclass"), "letter")
    _costs(costs, store.read("classes"))
    return fig


def _gaps(ax: Axes, rows: pd.DataFrame) -> None:
    for name, curve in rows.groupby("curve", sort=False):
        style = "-" if name.startswith("published") else "--"
        color = {"3": "C0", "10": "C1", "100": "C2"}[name.split("= ")[1]]
        ax.plot(curve["x"], curve["y"], style, color=color, label=name)
    ax.axhline(0, color="0.6", lw=0.8)
    ax.set(
        xlabel="standard deviation of f",
        ylabel="objective - exact expectation, nats a datum",
        title="the published objective is no lower bound",
    )
    ax.legend(fontsize=8)


def _sweeps(ax: Axes, rows: pd.DataFrame) -> None:
    for name, curve in rows.groupby("curve", sort=False):
        style = "o-" if name == "exact, CAVI" else ".--"
        ax.plot(curve["x"], -curve["y"], style, ms=4, label=name.replace(" (Algorithm 1)", ""))
    ax.set(
        yscale="log",
        ylim=(None, 500 * -rows["y"].min()),  # room for the legend
        xlabel="sweeps",
        ylabel="- objective",
        title="its ascent falls, in either order (digits)",
    )
    ax.legend(fontsize=8)


def end(trace: pd.Series) -> float:
    """A trained model's error; those of GPflow's peers never stop to fluctuate."""
    return trace.iloc[-5:].mean()


def _errors(ax: Axes, rows: pd.DataFrame, data: str) -> None:
    rows = rows[(rows["data"] == data) & (rows["split"] == 0)]
    ends = rows.groupby(["method", "setting"])["error"].apply(end)
    shown = [("exact", "SVI"), ("exact", "CAVI"), ("one-vs-rest", "SVI")]
    shown += [(method, ends[method].idxmin()) for method in ("Softmax", "RobustMax")]
    for method, setting in shown:
        curve = rows[(rows["method"] == method) & (rows["setting"] == setting)]
        ax.plot(curve["seconds"], curve["error"], label=f"{method}, {setting}")
    ax.set(
        xscale="log",
        xlabel="training time, s",
        ylabel="held-out error",
        title=f"{data}: 100 inducing points, one kernel for all",
    )
    ax.legend(fontsize=8)


def _costs(ax: Axes, rows: pd.DataFrame) -> None:
    medians = rows.groupby(["method", "classes"])["step_us"].median()
    unit = medians["SVI, exact"].iloc[0]
    for method in dict.fromkeys(rows["method"]):
        style = ".--" if method == "SVI, one-vs-rest" else ".-"  # "SVI, published" lies below it
        ax.plot(medians[method].index, medians[method] / unit, style, label=method)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="classes",
        ylabel="time of a step (exact, C = 3 is 1)",
        title="cost of a step at batch 500",
    )
    ax.legend(fontsize=8)
