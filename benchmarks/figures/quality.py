"""Critical-difference diagrams (Demsar 2006): bars join what Nemenyi's test does not tell apart."""

from __future__ import annotations

import pandas as pd
import store
from matplotlib.figure import Figure
from ranking import critical_difference, everywhere, wide

from gpflow_bsvm.plotting import figure

ROWS = ("quality",)
#: What ours was before its default kernel had an offset.
BEFORE = "bsvm, no offset"
SCORES = {"nll": "NLL", "error": "error", "brier": "Brier score", "ece": "ECE"}


def peers(rows: pd.DataFrame) -> pd.DataFrame:
    """:return: of methods that are there on every set, but for what ours was before."""
    return everywhere(rows[rows["method"] != BEFORE])


def draw() -> Figure:
    rows = peers(store.read("quality"))
    fig, axes = figure(2, 2, height=2.1)
    for ax, (score, label) in zip(axes, SCORES.items()):
        critical_difference(ax, wide(rows, score))
        ax.set_title(f"mean rank in {label}")
    fig.get_layout_engine().set(w_pad=0.2)  # names stand beside the axes
    fig.suptitle(f"{rows['data'].nunique()} data sets, 10 folds; rank 1 is best")
    return fig
