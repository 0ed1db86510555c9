"""Tables of the family: the linear machine, samplers, time against error."""

from __future__ import annotations

import pandas as pd

from .markdown import longer, markdown, scores

#: The runtime table's unit.
UNIT = "S-BSVM, exact, CAVI"


def weights(rows: pd.DataFrame) -> str:
    rows = rows[rows["kind"] == "weights"]
    means = rows.groupby(["n", "method"])[["cosine", "error", "best_error", "held"]].mean()
    lines = []
    for n, pair in means.groupby(level="n"):
        ours, svc = pair.loc[n, "LinearBSVM"], pair.loc[n, "LinearSVC"]
        lines.append(
            [
                n,
                f"{ours['cosine']:.3f} / {svc['cosine']:.3f}",
                f"{ours['error']:.3f} / {svc['error']:.3f} / {ours['best_error']:.3f}",
                f"{100 * ours['held']:.0f} %",
            ]
        )
    header = ["rows", "cosine to the true weights: LinearBSVM / LinearSVC"]
    return markdown(
        [*header, "error: LinearBSVM / LinearSVC / true weights", "in 90 % intervals"], lines
    )


def constant(rows: pd.DataFrame) -> str:
    lines = []
    for name, group in rows[rows["kind"] == "constant"].groupby("data", sort=False):
        learned = group[group["method"] == "VEM"].iloc[0]
        grid = group[group["method"] == "LinearSVC"].reset_index()
        best = grid.loc[grid["error"].idxmin()]
        near = grid.loc[(grid["C"] / learned["C"] - 1).abs().idxmin()]
        lines.append(
            [
                *(name, f"{learned['C']:.2g}", f"{learned['error']:.3f}"),
                *(f"{best['C']:.2g}", f"{best['error']:.3f}", f"{near['error']:.3f}"),
                longer(grid["seconds"].sum() / learned["seconds"]),
            ]
        )
    header = ["data", "learned C", "error", "best C of the grid", "its error"]
    return markdown([*header, "SVC at the learned C", "grid takes"], lines)


def large(rows: pd.DataFrame) -> str:
    rows = rows[rows["kind"] == "large"]
    lines = []
    for name, group in rows.groupby("data", sort=False):
        unit = group.loc[group["method"] == "LinearSVC, calibrated", "seconds"].item()
        cells = (f"{scores(fit, 4)} ({fit['seconds'] / unit:.2g})" for _, fit in group.iterrows())
        lines.append([name, *cells])
    return markdown(["data", *rows["method"].unique()], lines)


def draws(rows: pd.DataFrame) -> str:
    methods = [method for method in rows["method"].unique() if method != "Gibbs"]
    shown, samplers = [*methods[:2], "Gibbs"], ["Gibbs", "HMC"]
    lines = []
    for name, group in rows.groupby("data", sort=False):
        group = group.set_index("method")
        ratios = (f"{ratio:.2f}" for ratio in group.loc[methods, "deviation_ratio"])
        nll = " / ".join(f"{value:.3f}" for value in group.loc[shown, "nll"])
        sizes = " / ".join(f"{size:.0f}" for size in group.loc[samplers, "ess"])
        lines.append([name, *ratios, nll, f"{group.loc[samplers, 'r_hat'].max():.3f}", sizes])
    header = ["data", *(f"deviation: {method}" for method in methods), f"NLL: {', '.join(shown)}"]
    return markdown([*header, "R-hat", "effective draws, Gibbs / HMC"], lines)


def runtime(rows: pd.DataFrame) -> str:
    """Final error, and when it was first within half a percent point of it."""
    found = {}
    for method, group in rows.groupby("method", sort=False):
        final = group["error"].iloc[-5:].mean() if len(group) > 20 else group["error"].iloc[-1]
        found[method] = final, group.loc[group["error"] <= final + 0.005, "seconds"].iloc[0]
    unit = found[UNIT][1]
    return markdown(
        ["method", "final error", f"time to it, that of {UNIT} is 1"],
        ([method, f"{final:.3f}", f"{time / unit:.3g}"] for method, (final, time) in found.items()),
    )
