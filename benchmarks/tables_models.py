"""Tables of the family: the linear and the batch machine, samplers, time against error."""

from __future__ import annotations

import pandas as pd
from kernel import PAPER
from tables_text import markdown


def _kernel(rows: pd.DataFrame) -> str:
    """Error in % and its deviation over folds, beside what the paper prints."""
    methods = list(dict.fromkeys(rows["method"]))
    errors = 100 * rows.groupby(["data", "method"])["error"].agg(["mean", "std"])
    lines = []
    for name, printed in PAPER.items():
        cells = [
            f"{m['mean']:.1f} ± {m['std']:.1f}" for m in (errors.loc[name, x] for x in methods)
        ]
        lines.append([name, " / ".join(map(str, printed)), *cells])
    return markdown(["data", "paper: VI-BSVM / LibSVM / GPC", *methods], lines)


def _weights(rows: pd.DataFrame) -> str:
    rows = _numbers(rows[rows["kind"] == "weights"], ["cosine", "error", "best_error", "held"])
    means = rows.groupby(["n", "method"])[["cosine", "error", "best_error", "held"]].mean()
    lines = []
    for n in sorted(rows["n"].unique()):
        ours, svc = means.loc[n, "LinearBSVM"], means.loc[n, "LinearSVC"]
        lines.append(
            [
                f"{n}",
                f"{ours['cosine']:.3f} / {svc['cosine']:.3f}",
                f"{ours['error']:.3f} / {svc['error']:.3f} / {ours['best_error']:.3f}",
                f"{100 * ours['held']:.0f} %",
            ]
        )
    header = ["rows", "cosine to the true weights: LinearBSVM / LinearSVC"]
    return markdown(
        [*header, "error: LinearBSVM / LinearSVC / true weights", "in 90 % intervals"], lines
    )


def _constant(rows: pd.DataFrame) -> str:
    rows = _numbers(rows[rows["kind"] == "constant"], ["C", "error", "seconds"])
    lines = []
    for name, group in rows.groupby("data", sort=False):
        learned = group[group["method"] == "VEM"].iloc[0]
        grid = group[group["method"] == "LinearSVC"]
        best = grid.loc[grid["error"].idxmin()]
        near = grid.iloc[(grid["C"] / learned["C"]).apply(lambda x: abs(x - 1)).argmin()]
        lines.append(
            [
                name,
                f"{learned['C']:.2g}",
                f"{learned['error']:.3f}",
                f"{best['C']:.2g}",
                f"{best['error']:.3f}",
                f"{near['error']:.3f}",
                f"{grid['seconds'].sum() / learned['seconds']:.1f} times longer",
            ]
        )
    header = ["data", "learned C", "error", "best C of the grid", "its error"]
    return markdown([*header, "SVC at the learned C", "grid takes"], lines)


def _large(rows: pd.DataFrame) -> str:
    rows = _numbers(rows[rows["kind"] == "large"], ["error", "nll", "ece", "seconds"])
    methods = list(dict.fromkeys(rows["method"]))
    lines = []
    for name, group in rows.groupby("data", sort=False):
        group = group.set_index("method")
        unit = group.loc["LinearSVC, calibrated", "seconds"]
        cells = [
            f"{m['error']:.4f} / {m['nll']:.4f} ({m['seconds'] / unit:.2g})"
            for m in (group.loc[method] for method in methods)
        ]
        lines.append([name, *cells])
    return markdown(["data", *methods], lines)


def _draws(rows: pd.DataFrame) -> str:
    methods = [m for m in dict.fromkeys(rows["method"]) if m != "Gibbs"]
    lines = []
    for name, group in rows.groupby("data", sort=False):
        group = group.set_index("method")
        ratios = [f"{float(group.loc[m, 'deviation_ratio']):.2f}" for m in methods]
        nll = " / ".join(f"{float(group.loc[m, 'nll']):.3f}" for m in (*methods[:2], "Gibbs"))
        worst = max(float(group.loc[m, "r_hat"]) for m in ("Gibbs", "HMC"))
        sizes = " / ".join(f"{float(group.loc[m, 'ess']):.0f}" for m in ("Gibbs", "HMC"))
        lines.append([name, *ratios, nll, f"{worst:.3f}", sizes])
    header = [
        "data",
        *(f"deviation: {m}" for m in methods),
        f"NLL: {', '.join(methods[:2])}, Gibbs",
    ]
    return markdown([*header, "R-hat", "effective draws, Gibbs / HMC"], lines)


def _runtime(rows: pd.DataFrame) -> str:
    """Final error, and when it was first within half a percent point of it."""
    rows = _numbers(rows, ["seconds", "error"])
    unit, lines = None, []
    for method, group in rows.groupby("method", sort=False):
        final = group["error"].iloc[-5:].mean() if len(group) > 20 else group["error"].iloc[-1]
        arrived = group.loc[group["error"] <= final + 0.005, "seconds"].iloc[0]
        unit = arrived if method == UNIT else unit
        lines.append([method, final, arrived])
    return markdown(
        ["method", "final error", f"time to it, that of {UNIT} is 1"],
        [[method, f"{final:.3f}", f"{arrived / unit:.3g}"] for method, final, arrived in lines],
    )


def _numbers(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    return rows.assign(**{name: pd.to_numeric(rows[name], errors="coerce") for name in names})


UNIT = "S-BSVM, exact, CAVI"
TABLES = {
    "kernel": _kernel,
    "weights": _weights,
    "constant": _constant,
    "large": _large,
    "draws": _draws,
    "runtime": _runtime,
}
