"""Tables of what is learned: kernels, inducing points, penalties, probabilities."""

from __future__ import annotations

import pandas as pd
from ranks import SCORES, summary, wide
from tables_text import markdown


def _learning(rows: pd.DataFrame) -> str:
    """The best of a peer's settings; in units of VEM's time with the exact hinge."""
    rows = rows.copy()
    rows["ratio_to_ours"] = pd.to_numeric(rows["ratio_to_ours"])
    columns = {
        "VEM, exact hinge": ("VEM", "Hinge, exact"),
        "VEM, Bernoulli": ("VEM", "Bernoulli"),
        "natural gradients + Adam": ("natural, Adam", "Bernoulli"),
        "natural gradients + L-BFGS": ("natural, L-BFGS", "Bernoulli"),
        "L-BFGS on all, Bernoulli": ("L-BFGS", "Bernoulli"),
        "L-BFGS on all, exact hinge": ("L-BFGS", "Hinge, exact"),
    }
    lines = []
    for name, group in rows.groupby("data", sort=False):
        keyed = group.set_index(["method", "likelihood"])["ratio_to_ours"]
        best = [keyed.loc[[key]].min() for key in columns.values()]
        lines.append([name, *(f"{ratio:.2g}" if ratio > 0 else "not reached" for ratio in best)])
    return markdown(["data", *columns], lines)


def _lengthscale(rows: pd.DataFrame) -> str:
    """What VEM learned, beside the best of the grid by its own score, of the exact bound."""
    lines = []
    exact = rows[(rows["bound"] == "exact") & (rows["setting"] == "fixed")]
    for data, group in exact.groupby("data", sort=False):
        grid, learned = group[group["kind"] == "grid"], group[group["kind"] == "VEM"].iloc[0]
        best = grid.loc[grid["nll"].idxmin()]
        spread = f"{learned['lengthscale_min']:.2f} to {learned['lengthscale_max']:.2f}"
        lines.append(
            [
                data,
                f"{learned['lengthscale']:.2f} ({spread})",
                f"{learned['error']:.3f} / {learned['nll']:.3f}",
                f"{best['lengthscale']:.2f}",
                f"{best['error']:.3f} / {best['nll']:.3f} ± {float(best['nll_se']):.3f}",
                f"{grid['error'].min():.3f}",
                f"{float(learned['grid_over_learning']):.0f} times longer",
            ]
        )
    header = ["data", "learned (folds)", "error / NLL", "grid, best NLL", "error / NLL"]
    return markdown([*header, "grid, lowest error", "grid takes"], lines)


def _inducing(rows: pd.DataFrame) -> str:
    fixed = rows[rows["kernel"] == "fixed"]
    cells = ["num_inducing", "selection"]
    mean = fixed.groupby(cells)[["error", "time_ratio"]].mean()
    deviation = fixed.groupby(cells)["error"].std()
    names = list(dict.fromkeys(fixed["selection"]))
    lines = []
    for M in sorted(fixed["num_inducing"].unique()):
        texts = [
            f"{100 * mean.loc[M, name]['error']:.1f} ± {100 * deviation.loc[M, name]:.1f} "
            f"({mean.loc[M, name]['time_ratio']:.2f})"
            for name in names
        ]
        lines.append([str(M), *texts])
    return markdown(["M", *names], lines)


def _relevance(rows: pd.DataFrame) -> str:
    """Rows with noise inputs, by definition or appended; others have nothing to tell apart."""
    summary = rows[(rows["input"] == "") & (rows["num_noise"] != "0")].copy()
    names = summary.columns.difference(["data", "priors", "kind"])
    summary[names] = summary[names].apply(pd.to_numeric)
    summary = summary[summary["num_noise"] > 0]
    lines = [
        [
            row["data"] + (f" + {row['appended']:.0f}" if row["appended"] else ""),
            row["priors"],
            f"{row['num_true']:.0f} / {row['num_noise']:.0f}",
            f"{row['auc']:.2f}",
            f"{row['ignored_true']:.0f} / {row['ignored_noise']:.0f}",
            f"{row['error_ard']:.3f} / {row['error_isotropic']:.3f}",
        ]
        for _, row in summary.iterrows()
    ]
    header = ["data", "priors", "true / noise inputs", "AUC of relevance"]
    return markdown([*header, "ignored, true / noise", "error, ARD / isotropic"], lines)


def _robust(rows: pd.DataFrame) -> str:
    lines = []
    for (start, priors), group in rows.groupby(["start", "priors"]):
        worse = (group["error"] > group["error_of_majority"]).sum()
        lines.append(
            [
                start,
                "default" if priors else "none",
                str(len(group)),
                str((group["failure"] != "").sum()),
                f"{group['largest_relative_fall'].max():.0e}".replace("0e+00", "0"),
                f"{group['error'].mean():.3f} / {group['error_of_majority'].mean():.3f}",
                str(worse),
            ]
        )
    header = [
        "lengthscales at the start",
        "priors",
        "fits",
        "failures",
        "largest fall of the bound",
    ]
    return markdown([*header, "error / of the majority", "worse than the majority"], lines)


def _quality(rows: pd.DataFrame) -> str:
    """Mean ranks, and in how many sets a method is the best."""
    ranks = summary(rows)
    methods = [name for name in ranks.columns if name != "p"]
    lines = []
    for score, label in SCORES.items():
        best = wide(rows, score).idxmin(axis=1).value_counts()
        cells = [f"{ranks.loc[label, name]:.2f} ({best.get(name, 0)})" for name in methods]
        lines.append([label, *cells, f"{ranks.loc[label, 'p']:.1g}"])
    return markdown(["mean rank (sets won)", *methods, "p (Friedman)"], lines)


def _quality_sets(rows: pd.DataFrame) -> str:
    methods = list(dict.fromkeys(rows["method"]))
    error, nll = wide(rows, "error"), wide(rows, "nll")
    about = rows.groupby("data", sort=False)[["classes", "n"]].first()
    lines = [
        [
            name,
            f"{n} / {classes}",
            *(f"{error.loc[name, m]:.3f} / {nll.loc[name, m]:.3f}" for m in methods),
        ]
        for name, (classes, n) in about.iterrows()
    ]
    return markdown(["data", "rows / classes", *methods], lines)


TABLES = {
    "learning": _learning,
    "quality": _quality,
    "quality_sets": _quality_sets,
    "robust": _robust,
    "relevance": _relevance,
    "lengthscale": _lengthscale,
    "inducing": _inducing,
}
