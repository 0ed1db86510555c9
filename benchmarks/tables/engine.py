"""Tables of the engine: time of steps and fits, failures, monotony, memory."""

from __future__ import annotations

import re

import pandas as pd

from .markdown import longer, markdown


def step(rows: pd.DataFrame) -> str:
    """Medians over repeats of the ratio within a repeat, theirs over ours."""
    wide = rows.pivot(index=["batch", "repeat"], columns="method", values="step_us")
    theirs = ["GPflow, one call a step", "GPflow, loop in a graph"]
    lines = []
    for batch, group in wide.groupby(level="batch"):
        for ours in ("SVI, augmented", "SVI, exact"):
            ratios = group[theirs].div(group[ours], axis=0).median()
            lines.append([batch, ours, *map(longer, ratios)])
    header = ["batch", "step of", "GPflow step called from Python", "GPflow loop in a graph"]
    return markdown(header, lines)


def classes(rows: pd.DataFrame) -> str:
    """Medians over repeats of the ratio within a repeat, theirs over ours."""
    wide = rows.pivot(index=["classes", "repeat"], columns="method", values="step_us")
    theirs, ours = ["GPflow, Softmax", "GPflow, RobustMax"], ["SVI, exact", "SVI, one-vs-rest"]
    medians = wide.groupby(level="classes").median()
    costs = medians[ours] / medians["SVI, exact"].iloc[0]
    lines = []
    for number, group in wide.groupby(level="classes"):
        ratios = group[theirs].div(group["SVI, exact"], axis=0).median()
        lines.append([number, *map(longer, ratios), *(f"{cost:.1f}" for cost in costs.loc[number])])
    header = ["classes", *theirs, "cost of a step, exact (C = 3 is 1)", "one-vs-rest"]
    return markdown(header, lines)


def sweeps(rows: pd.DataFrame) -> str:
    """GPflow at the best of its step sizes."""
    lines = []
    for (variance, theta), group in rows.groupby(["variance", "theta"]):
        medians = group.groupby("method")[["ms", "steps"]].median()
        exact = medians.loc["CAVI, Hinge exact"]
        shown = [medians.loc[name] for name in ("CAVI, Hinge augmented", "CAVI, Probit")]
        for kind in ("steps", "steps + ELBO"):
            peers = medians[medians.index.str.match(rf"GPflow .*, {re.escape(kind)}$")]
            shown.append(peers.loc[peers["ms"].idxmin()])
        times = (f"{longer(fit.ms / exact.ms)} ({fit.steps:.0f} steps)" for fit in shown)
        lines.append([f"{variance:g}, {theta:g}", f"{exact['steps']:.0f}", *times])
    header = ["variance, theta", "exact: sweeps", "augmented", "probit, same engine"]
    return markdown([*header, "GPflow, steps only", "GPflow, steps + ELBO"], lines)


def failure(rows: pd.DataFrame) -> str:
    rows = rows.assign(cell=rows.apply(_outcome, axis=1))
    wide = rows.pivot(index="method", columns="learning_rate", values="cell")
    lines = ([method, *wide.loc[method]] for method in rows["method"].unique())
    return markdown(["method", *(f"step {size:g}" for size in wide.columns)], lines)


def _outcome(row: pd.Series) -> str:
    if pd.notna(row["error"]):
        return f"**fails** at step {row['steps_done'] + 1}"
    return f"{100 * row['training_error']:.1f} % error"


def memory(rows: pd.DataFrame) -> str:
    header = ["fits", "resident memory, MB", "traces of the sweep", "of the projection"]
    shown = rows[rows["fits"].isin([100, 200, 400, 600, 800, 1000])]
    return markdown(header, ([f"{value:.0f}" for value in row] for row in shown.to_numpy(float)))


def monotone(rows: pd.DataFrame) -> str:
    lines = []
    for about, group in rows.groupby(["bound", "kernel"]):
        sizes = len(group), f"{group['sweeps'].median():.0f}", f"{group['smallest_rho'].min():.2g}"
        lines.append([*about, *sizes, f"{group['largest_relative_fall'].max():.1g}"])
    header = ["bound", "kernel", "sets", "sweeps, median", "smallest rho"]
    return markdown([*header, "largest relative fall"], lines)


def robust(rows: pd.DataFrame) -> str:
    lines = []
    for (start, priors), group in rows.groupby(["start", "priors"]):
        error, majority = group["error"], group["error_of_majority"]
        fall = f"{group['largest_relative_fall'].max():.0e}".replace("0e+00", "0")
        lines.append(
            [
                *(start, "default" if priors else "none"),
                *(len(group), group["failure"].notna().sum(), fall),
                *(f"{error.mean():.3f} / {majority.mean():.3f}", (error > majority).sum()),
            ]
        )
    header = ["lengthscales at the start", "priors", "fits", "failures"]
    last = ["largest fall of the bound", "error / of the majority", "worse than the majority"]
    return markdown([*header, *last], lines)
