"""Critical-difference diagrams (Demsar 2006): bars join what Nemenyi's test does not tell apart."""

from __future__ import annotations

import pandas as pd
import store
from matplotlib.figure import Figure
from scipy.stats import friedmanchisquare

from gpflow_bsvm.plotting import figure

ROWS = ("quality",)
SCORES = {"nll": "NLL", "error": "error", "brier": "Brier score", "ece": "ECE"}


def everywhere(rows: pd.DataFrame) -> pd.DataFrame:
    """:return: the rows of those methods that were fitted to every set."""
    sets = rows.groupby("method")["data"].transform("nunique")
    return rows[sets == rows["data"].nunique()]


def wide(rows: pd.DataFrame, score: str) -> pd.DataFrame:
    """:return: means over folds, a row for each data set and a column for each method."""
    return rows.pivot(index="data", columns="method", values=score)[rows["method"].unique()]


def ranks(rows: pd.DataFrame, score: str) -> tuple[pd.Series, float]:
    """:return: mean ranks by method (1 is best), and the p-value of Friedman's test."""
    table = wide(rows, score)
    p_value = friedmanchisquare(*table.to_numpy().T).pvalue
    return table.round(6).rank(axis=1).mean(), p_value  # equal to six digits: a tie


def draw() -> Figure:
    from scikit_posthocs import critical_difference_diagram, posthoc_nemenyi_friedman

    rows = everywhere(store.read("quality"))
    fig, axes = figure(2, 2, height=2.1)
    for ax, (score, label) in zip(axes, SCORES.items()):
        each = wide(rows, score).round(6).rank(axis=1)
        colors = {method: f"C{n}" for n, method in enumerate(each.columns)}
        critical_difference_diagram(
            each.mean(), posthoc_nemenyi_friedman(each), ax=ax, color_palette=colors
        )
        ax.set_title(f"mean rank in {label}")
    fig.suptitle(f"{rows['data'].nunique()} data sets, 10 folds; rank 1 is best")
    return fig
