"""The hybrid under attack, as Fig. 6 of Wistuba & Rawat (2018), and who notices the attack."""

from __future__ import annotations

import pandas as pd
import store
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpflow_bsvm.plotting import attack_curve, figure

ROWS = ("adversarial",)


def draw() -> Figure:
    rows = store.read("adversarial")
    rows = rows[rows["attack"] == "fgsm"]
    keys = ["data", "method", "score", "epsilon"]
    means = rows.groupby(keys, sort=False)[["accuracy", "mean", "auc"]].mean()
    means = means.sort_index()
    fig, axes = figure(1, 3)
    for ax, (data, title) in zip(axes, (("mnist", "MNIST"), ("fashion_mnist", "Fashion-MNIST"))):
        one = means.loc[(data, "hybrid", "variation ratio")]
        attack_curve(ax, one.index, one["accuracy"], one["mean"], one["auc"])
        ax.set(title=f"{title}, hybrid, FGSM")
    _detectors(axes[2], means.loc["mnist", "auc"])
    return fig


def _detectors(ax: Axes, auc: pd.Series) -> None:
    for (method, score), line in auc.groupby(level=["method", "score"], sort=False):
        ax.plot(line.index.get_level_values("epsilon"), line, ".-", label=f"{method}: {score}")
    ax.axhline(0.5, color="0.7", lw=1, zorder=0)
    ax.set(
        xlabel="strength of the attack, epsilon", ylabel="ROC-AUC of detection", ylim=(-0.03, 1.03)
    )
    ax.set(title="MNIST, FGSM: attacked against clean images")
    ax.legend(fontsize=8)
