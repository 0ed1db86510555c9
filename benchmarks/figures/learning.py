"""What is learned: lengthscale, inducing points, relevances."""

from __future__ import annotations

import pandas as pd
import store
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpflow_bsvm.plotting import figure

ROWS = ("lengthscale", "inducing", "relevance")


def draw() -> Figure:
    fig, (left, middle, right) = figure(1, 3, width=4.7)
    _lengthscales(left, store.read("lengthscale"), "waveform")
    _selections(middle, store.read("inducing"))
    _relevances(right, store.read("relevance"), "waveform-40")
    return fig


def _lengthscales(ax: Axes, rows: pd.DataFrame, data: str) -> None:
    rows = rows[(rows["data"] == data) & (rows["bound"] == "exact")]
    for color, (setting, group) in zip(("C0", "C1"), rows.groupby("setting", sort=False)):
        grid, learned = group[group["kind"] == "grid"], group[group["kind"] == "VEM"].iloc[0]
        label = "variance 1" if setting == "fixed" else f"variance {learned['variance']:.0f}"
        x, y, spread = grid["lengthscale"], grid["nll"], grid["nll_se"]
        ax.plot(x, y, color=color, label=f"grid, {label}")
        ax.fill_between(x, y - spread, y + spread, color=color, alpha=0.15, linewidth=0)
        label = "learned by VEM" if setting == "fixed" else "learned, variance too"
        ax.plot(learned["lengthscale"], learned["nll"], "o", color=color, ms=8, label=label)
    ax.set(
        xscale="log",
        ylim=(None, rows["nll"].min() + 0.2),
        xlabel="lengthscale",
        ylabel="NLL, 10-fold cross-validation",
        title=f"{data}: learned against a grid",
    )
    ax.legend(fontsize=8)


def _selections(ax: Axes, rows: pd.DataFrame) -> None:
    for selection in dict.fromkeys(rows["selection"]):
        group = rows[(rows["selection"] == selection) & (rows["kernel"] == "fixed")]
        folds = group.groupby("num_inducing")["error"]
        mean, spread = folds.mean(), folds.std()
        (line,) = ax.plot(mean.index, mean, ".-", label=selection)
        ax.fill_between(
            mean.index, mean - spread, mean + spread, color=line.get_color(), alpha=0.1, linewidth=0
        )
    ax.set(
        xscale="log",
        ylim=(0, 0.4),
        xlabel="inducing points",
        ylabel="error, mean and sd of 10 folds",
        title="USPS 3 and 5: inducing points",
    )
    ax.set_xticks(mean.index, [str(m) for m in mean.index])
    ax.minorticks_off()
    ax.legend(fontsize=8)


def _relevances(ax: Axes, rows: pd.DataFrame, data: str) -> None:
    rows = rows[(rows["data"] == data) & (rows["kind"] == "input") & (rows["appended"] == 0)]
    truth = rows[rows["priors"] == "default"]
    share = truth["information"] / truth["information"].max()
    ax.bar(truth["input"], share, color="0.85", label="information, of the largest")
    for priors, label in (("default", "relevance, default priors"), ("none", "relevance, none")):
        group = rows[rows["priors"] == priors]
        ax.plot(group["input"], group["relevance"], ".-", label=label)
    ax.set(
        ylim=(0, 1.05),
        xlabel="input (22 to 40 are noise)",
        ylabel="1 / lengthscale, of the largest",
        title=f"{data}: relevance of inputs",
    )
    ax.legend(fontsize=8)
