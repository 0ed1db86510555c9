"""Tables of the criteria of Gold & Sollich (2003)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import pearsonr

from .markdown import markdown

#: Column -> (name, what it estimates).
ESTIMATES = {
    "gacv": ("GACV", "loo_hinge"),
    "hinge_span": ("HingeSpan", "loo_hinge"),
    "span": ("Span", "loo_quadratic"),
    "smoothed_span": ("SmoothedSpan", "loo_quadratic"),
}
#: Column -> (name, error on other rows that it should rank, 1 if less is better, else -1).
RANKED = {
    "loo": ("leave-one-out, linear", "error", 1),
    "gacv": ("GACV", "error", 1),
    "hinge_span": ("HingeSpan", "error", 1),
    "laplace": ("Laplace", "error", -1),
    "loo_quadratic": ("leave-one-out, quadratic", "error_quadratic", 1),
    "smoothed_span": ("SmoothedSpan", "error_quadratic", 1),
    "laplace_quadratic": ("Laplace, quadratic", "error_quadratic", -1),
    "bound": ("VariationalBound", "error_bayesian", -1),
    "loo_density": ("LeaveOneOutDensity", "error_bayesian", -1),
}


def left_out(rows: pd.DataFrame) -> str:
    """Pearson's and Spearman's correlation with what is estimated, and the mean difference."""
    lines = []
    for name, group in _sets(rows):
        lines.append([name, *(_agreement(group, *pair) for pair in _pairs())])
        lines[-1].append(f"{100 * group['held'].median():.0f} %")
    header = ["data", *(f"{name} of {goal}" for name, goal in _titles())]
    return markdown([*header, "held by the margin"], lines)


def _sets(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return [(name, rows[rows["data"] == name]) for name in rows["data"].unique()]


def _pairs() -> list[tuple[str, str]]:
    return [(column, goal) for column, (_, goal) in ESTIMATES.items()]


def _titles() -> list[tuple[str, str]]:
    goals = {"loo_hinge": "the hinge loss", "loo_quadratic": "the error"}
    return [(name, goals[goal]) for name, goal in ESTIMATES.values()]


def _agreement(group: pd.DataFrame, column: str, goal: str) -> str:
    x, y = group[column], group[goal]
    bias = (x - y).mean()
    return f"{pearsonr(x, y)[0]:.2f} / {_rank(x, y):.2f}, {bias:+.3g}"


def by_penalty(rows: pd.DataFrame) -> str:
    """At each C: means over sets of values, and of Spearman's correlations over lengthscales."""
    lines = []
    for penalty, group in rows.groupby("penalty"):
        means = group[["loo_hinge", "gacv", "hinge_span"]].mean()
        ranks = {
            (column, goal): np.nanmean([_rank(sign * g[column], g[goal]) for _, g in _sets(group)])
            for column, goal, sign in (
                ("gacv", "loo_hinge", 1),
                ("hinge_span", "loo_hinge", 1),
                ("bound", "error_bayesian", -1),
            )
        }
        values = (f"{value:.2f}" for value in means)
        held = f"{100 * group['held'].mean():.0f} %"
        lines.append([f"{penalty:g}", *values, held, *(f"{rank:.2f}" for rank in ranks.values())])
    header = ["C", "hinge loss left out", "GACV", "HingeSpan", "held by the margin"]
    ranked = ["rank of GACV", "of HingeSpan", "of VariationalBound, with errors"]
    return markdown([*header, *ranked], lines)


def _rank(x: pd.Series, y: pd.Series) -> float:
    """:return: Spearman's correlation, NaN where all y are the same."""
    return float(x.corr(y, method="spearman")) if y.nunique() > 1 else float("nan")


def ranking(rows: pd.DataFrame) -> str:
    """Spearman's correlation with the error on other rows, and the error at the best place."""
    lines = []
    for column, (name, goal, sign) in RANKED.items():
        groups = [group for _, group in _sets(rows)]
        ranks = [_rank(sign * group[column], group[goal]) for group in groups]
        lost = [
            group.loc[(sign * group[column]).idxmin(), goal] - group[goal].min() for group in groups
        ]
        cells = [f"{rank:.2f} ({100 * more:.1f})" for rank, more in zip(ranks, lost)]
        means = f"{sum(ranks) / len(ranks):.2f} ({100 * sum(lost) / len(lost):.1f})"
        lines.append([name, *cells, means])
    return markdown(["criterion", *rows["data"].unique(), "mean"], lines)


def criteria_time(rows: pd.DataFrame) -> str:
    """Times, in units of the linear machine at the least n; the order from the three largest n."""
    times = rows.pivot(index="criterion", columns="n", values="seconds")
    times = times.loc[rows["criterion"].unique()]
    times /= times.iloc[0, 0]
    lines = []
    for name, line in times.iterrows():
        last = line.dropna().iloc[-3:]
        order = np.polyfit(np.log(last.index.to_numpy(float)), np.log(last), 1)[0]
        cells = (f"{time:.2g}" if pd.notna(time) else "-" for time in line)
        lines.append([name, *cells, f"{order:.1f}"])
    return markdown(["time", *(f"n = {n}" for n in times.columns), "order"], lines)
