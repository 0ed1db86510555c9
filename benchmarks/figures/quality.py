"""Critical-difference diagrams (Demsar 2006): bars join what Nemenyi's test does not tell apart."""

from __future__ import annotations

import store
from matplotlib.figure import Figure
from ranking import critical_difference, everywhere, wide

from gpflow_bsvm.plotting import figure

ROWS = ("quality",)
SCORES = {"nll": "NLL", "error": "error", "brier": "Brier score", "ece": "ECE"}


def draw() -> Figure:
    rows = everywhere(store.read("quality"))
    fig, axes = figure(2, 2, height=2.1)
    for ax, (score, label) in zip(axes, SCORES.items()):
        critical_difference(ax, wide(rows, score))
        ax.set_title(f"mean rank in {label}")
    fig.suptitle(f"{rows['data'].nunique()} data sets, 10 folds; rank 1 is best")
    return fig
