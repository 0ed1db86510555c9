"""Tables of what it takes to fit many rows, and to be killed."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown, scores

#: Nearer than this a score is at its end.
NEAR, AUC_NEAR = 1e-4, 1e-3


def beginnings(rows: pd.DataFrame) -> str:
    lines = []
    for (loss, start, number), fit in rows.groupby(["loss", "start", "rows"], sort=False):
        name = "the prior" if start == "cold" else f"{number} rows, {start}"
        end = fit.iloc[-1]
        near = [_first_near(fit, score) for score in ("auc", "nll")]
        scores = [f"{end['auc']:.4f}", f"{end['nll']:.4f}"]
        lines.append([loss, name, end["passes"], *near, *scores])
    near = [f"until {score} is within 1e-4 of its end" for score in ("AUC", "NLL")]
    return markdown(["loss", "begins at", "passes", *near, "AUC", "NLL"], lines)


def _first_near(fit: pd.DataFrame, score: str) -> int:
    """:return: passes from which on the score stays near its end."""
    far = ((fit[score] - fit[score].iloc[-1]).abs() > NEAR).to_numpy()
    return int(fit["passes"].iloc[far.nonzero()[0][-1] + 1 if far.any() else 0])


def kills(rows: pd.DataFrame) -> str:
    lines = []
    rows = rows[rows["fit"] != "predict"]  # measured when a prediction could go on, too
    for name, fit in rows.groupby("fit", sort=False):
        greatest = fit["difference"].max()
        stored = (fit["checkpoints"] > 0).sum()
        took = f"{fit['of'].iloc[0]:.1f}"
        lines.append([name, len(fit), took, stored, "none" if greatest == 0 else f"{greatest:.1e}"])
    header = ["", "kills", "seconds if left alone", "with a checkpoint there"]
    return markdown([*header, "difference at the end"], lines)


def time_to_auc(rows: pd.DataFrame) -> str:
    """The best is that of our fits and of SVGP."""
    best = rows[rows["method"].str.contains("fit|SVI|SVGP")]["auc"].max()
    lines = []
    for method, fit in rows.groupby("method", sort=False):
        near = fit[fit["auc"] >= best - AUC_NEAR]["seconds"]
        shown = "not reached" if near.empty else f"{near.iloc[0]:.1f}"
        lines.append([method, shown, f"{fit['auc'].max():.4f}", f"{fit['seconds'].iloc[-1]:.0f}"])
    header = [f"seconds until AUC is within {AUC_NEAR:g} of the best ({best:.4f})", "best AUC"]
    return markdown(["", *header, "seconds in all"], lines)


def large_sets(rows: pd.DataFrame) -> str:
    """Error / NLL, and in brackets our seconds, those of others in units of them."""
    methods = rows["method"].unique()
    lines = []
    for name, group in rows.groupby("data", sort=False):
        about, fits = group.iloc[0], group.set_index("method")
        ours = fits.loc["bsvm", "seconds"]
        times = [f"{ours:.0f} s", *(f"{s / ours:.2g}" for s in fits.loc[methods[1:], "seconds"])]
        cells = (f"{scores(fits.loc[m], 4)} ({time})" for m, time in zip(methods, times))
        lines.append([name, f"{about['n']} / {about['d']} / {about['classes']}", *cells])
    return markdown(["data", "rows / columns / classes", *methods], lines)
