"""The README's multi-class picture, from rows in `results`.

python benchmarks/picture_multiclass.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pandas as pd
from common import RESULTS
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from tables import end

PICTURE = Path(__file__).parent.parent / "docs" / "multiclass.png"


def main() -> None:
    matplotlib.use("Agg")
    fig, axes = plt.subplots(2, 2, figsize=(10, 7.6), layout="constrained")
    published = pd.read_csv(RESULTS / "published.csv")
    _gaps(axes[0, 0], published[published["kind"] == "gap"])
    _sweeps(axes[0, 1], published[published["kind"] == "sweep"])
    _errors(axes[1, 0], pd.read_csv(RESULTS / "multiclass.csv"), "letter")
    _costs(axes[1, 1], pd.read_csv(RESULTS / "classes.csv"))
    fig.savefig(PICTURE, dpi=110)


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
        ax.plot(curve["x"], -curve["y"], style, ms=4, label=name)
    ax.set(
        yscale="log",
        xlabel="sweeps",
        ylabel="- objective",
        title="its ascent falls, and so do undamped steps (digits)",
    )
    ax.legend(fontsize=8)


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
        ax.plot(medians[method].index, medians[method] / unit, ".-", label=method)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="classes",
        ylabel="time of a step (exact, C = 3 is 1)",
        title="cost of a step at batch 500",
    )
    ax.legend(fontsize=8)


if __name__ == "__main__":
    main()
