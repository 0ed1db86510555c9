"""Tables of networks with a Bayesian SVM on them."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown

TRIALS = "CIFAR-10, four epochs"
SHOWN = ("softmax", "softmax, temperature", "hybrid, frozen", "hybrid, warm", "hybrid")


def hybrid(rows: pd.DataFrame) -> str:
    """At the end of training; processor time as a ratio to that of softmax."""
    last = _last(rows[rows["data"] != TRIALS])
    lines = []
    for name in rows.loc[rows["data"] != TRIALS, "data"].unique():
        unit = last.loc[(name, "softmax"), "seconds"]
        lines += [
            [name, method, *_scores(row), f"{row['seconds'] / unit:.2f}"]
            for method, row in last.loc[name].loc[list(SHOWN)].iterrows()
        ]
    return markdown(["data", "method", "error in %", "NLL", "ECE", "time, softmax is 1"], lines)


def hybrid_trials(rows: pd.DataFrame) -> str:
    """From the start, with and without what is to help it; then CAVI."""
    rows = rows[rows["data"] == TRIALS].set_index("method")
    lines = [
        [method, *_two(rows.loc[[f"{method}, before CAVI"]]), *_two(rows.loc[[method]])]
        for method in rows.index.unique()
        if "before" not in method
    ]
    return markdown(["", "error in %", "NLL", "error in %, after CAVI", "NLL"], lines)


def _two(rows: pd.DataFrame) -> list[str]:
    return [f"{100 * rows['error'].iloc[-1]:.1f}", f"{rows['nll'].iloc[-1]:.3f}"]


def frozen(rows: pd.DataFrame) -> str:
    """Classifiers on the same features; processor time as a ratio to logistic regression's."""
    lines = []
    for name in rows["data"].unique():
        group = rows[rows["data"] == name].set_index("method")
        unit = group.loc["logistic regression", "seconds"]
        for method, row in group.iterrows():
            time = f"{row['seconds'] / unit:.1f}" if row["seconds"] else ""
            lines.append([name, method, *_scores(row), time])
    header = ["data", "method", "error in %", "NLL", "ECE", "time, logistic regression is 1"]
    return markdown(header, lines)


def _last(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.groupby(["data", "method"], sort=False).last()


def _scores(row: pd.Series) -> list[str]:
    return [f"{100 * row['error']:.2f}", f"{row['nll']:.4f}", f"{row['ece']:.4f}"]
