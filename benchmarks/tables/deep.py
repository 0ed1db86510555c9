"""Tables of networks with a Bayesian SVM on them."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown

TRIALS = "mnist, 12 000 rows"
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
    """What is tried against a poor start: after each epoch, and after CAVI."""
    rows = rows[rows["data"] == TRIALS]
    lines = []
    for method in [name for name in rows["method"].unique() if "before" not in name]:
        early = rows[rows["method"] == f"{method}, before CAVI"]
        end = rows[rows["method"] == method].iloc[-1]
        each = [f"{100 * row['error']:.1f} / {row['nll']:.3f}" for _, row in early.iterrows()]
        lines.append([method, *each, f"{100 * end['error']:.1f} / {end['nll']:.3f}"])
    epochs = [f"epoch {number}" for number in range(1, len(lines[0]) - 1)]
    return markdown(["error in % / NLL", *epochs, "then CAVI"], lines)


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
