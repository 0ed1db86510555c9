"""Tables of the engine: time of steps and of fits."""

from __future__ import annotations

import re

import pandas as pd

from .markdown import longer, markdown, shows


@shows("step")
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


@shows("classes")
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


@shows("sweeps")
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
