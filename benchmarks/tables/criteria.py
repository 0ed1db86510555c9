"""Tables of the criteria of Gold & Sollich (2003)."""

from __future__ import annotations

from collections.abc import Callable

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
#: Test error in % as printed in Table 3 (mean, standard deviation) and Table 4 (best trial).
PRINTED = {
    "crabs": ((10.7, 2.1), (10.5, 1.3), (13.0, 1.8), (6.0, 1.8), (9.2, 1.5)),
    "pima": ((30.3, 2.0), (33.5, 2.2), (23.2, 2.7), (21.0, 1.1), (20.8, 1.5)),
    "wdbc": ((5.8, 2.5), (5.8, 3.6), (9.6, 2.8), (7.8, 4.2), (4.0, 1.2)),
    "twonorm": ((13.5, 12.6), (12.6, 5.0), (5.2, 1.9), (4.6, 0.9), (4.0, 0.2)),
    "ringnorm": ((4.7, 1.6), (2.5, 5.3), (3.3, 1.3), (3.5, 1.3), (3.2, 0.6)),
}
PRINTED_BEST = {
    "crabs": (5.9, 9.2, 10.9, 3.4, 5.0),
    "pima": (27.8, 28.4, 20.2, 19.0, 19.3),
    "wdbc": (1.9, 3.4, 4.1, 1.9, 1.5),
    "twonorm": (2.9, 3.1, 3.4, 3.5, 3.4),
    "ringnorm": (2.1, 2.2, 1.9, 2.0, 2.5),
}
#: Method of the rows -> column of the printed tables.
COLUMNS = {"laplace": 0, "laplace_quadratic": 1, "gacv": 2, "smoothed_span": 3, "evidence": 4}
#: What the paper's own searches are called, behind the criterion.
WALK = ", walk"
METHODS = {
    "laplace": "Laplace (LE1)",
    "laplace_quadratic": "Laplace, quadratic (LE2)",
    "gacv": "GACV",
    "smoothed_span": "SmoothedSpan (Span)",
    "evidence": "evidence by HMC",
    "hinge_span": "HingeSpan",
    "VEM": "VEM",
    "plug-in": "SVC, VEM's kernel",
    "BSVMClassifier": "BSVMClassifier()",
    "SVC, grid": "SVC, grid",
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


def gold_sollich(rows: pd.DataFrame) -> str:
    """Table 3: mean and deviation of the test error over starts [how many], (as printed)."""
    return _by_method(rows, _spread, lambda name, column: "{} ± {}".format(*PRINTED[name][column]))


def gold_sollich_best(rows: pd.DataFrame) -> str:
    """Table 4: the best start by test error."""
    return _by_method(
        rows,
        lambda errors: f"{errors.min():.1f}",
        lambda name, column: str(PRINTED_BEST[name][column]),
    )


def gold_sollich_sensible(rows: pd.DataFrame) -> str:
    """Test error from the one start where the kernel makes sense."""
    rows = rows[rows["start"] == -1]
    return _table(rows, lambda errors: f"{errors.mean():.1f}", lambda *_: "")


def _by_method(rows: pd.DataFrame, cell: Callable, printed: Callable) -> str:
    return _table(rows[rows["start"] >= 0], cell, printed)


def _table(rows: pd.DataFrame, cell: Callable, printed: Callable) -> str:
    names, lines = [name for name in (*PRINTED, "waveform") if (rows["data"] == name).any()], []
    for method, title in _titled(rows):
        column = COLUMNS.get(method.removesuffix(WALK))
        line = [title]
        for name in names:
            group = rows[(rows["method"] == method) & (rows["data"] == name)]
            own = cell(100 * group["error"]) if len(group) else "-"
            known = column is not None and name in PRINTED
            paper = printed(name, column) if known else ""
            line.append(f"{own} ({paper})" if paper else own)
        lines.append(line)
    return markdown(["error in %", *names], lines)


def _titled(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """:return: methods that there are, and what tables call them; the paper's walk last."""
    walks = {f"{method}{WALK}": f"{title}, random walk" for method, title in METHODS.items()}
    known = set(rows["method"])
    return [pair for pair in {**METHODS, **walks}.items() if pair[0] in known]


def _spread(errors: pd.Series) -> str:
    if len(errors) == 1:
        return f"{errors.mean():.1f} [1]"
    return f"{errors.mean():.1f} ± {errors.std():.1f} [{len(errors)}]"


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
