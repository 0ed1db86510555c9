"""Tables of what is learned: kernels, inducing points, relevances."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown, scores

PEERS = {
    "VEM, exact hinge": ("VEM", "Hinge, exact"),
    "VEM, Bernoulli": ("VEM", "Bernoulli"),
    "natural gradients + Adam": ("natural, Adam", "Bernoulli"),
    "natural gradients + L-BFGS": ("natural, L-BFGS", "Bernoulli"),
    "L-BFGS on all, Bernoulli": ("L-BFGS", "Bernoulli"),
    "L-BFGS on all, exact hinge": ("L-BFGS", "Hinge, exact"),
}


def learning(rows: pd.DataFrame) -> str:
    """The best of a peer's settings; in units of VEM's time with the exact hinge."""
    best = rows.groupby(["data", "method", "likelihood"])["ratio_to_ours"].min()
    lines = []
    for name in rows["data"].unique():
        ratios = (best[(name, *peer)] for peer in PEERS.values())
        lines.append([name, *(f"{r:.2g}" if r > 0 else "not reached" for r in ratios)])
    return markdown(["data", *PEERS], lines)


def lengthscale(rows: pd.DataFrame) -> str:
    """What VEM learned, beside the best of the grid by its own score, of the exact bound."""
    lines = []
    exact = rows[(rows["bound"] == "exact") & (rows["setting"] == "fixed")]
    for data, group in exact.groupby("data", sort=False):
        grid, learned = group[group["kind"] == "grid"], group[group["kind"] == "VEM"].iloc[0]
        best = grid.loc[grid["nll"].idxmin()]
        spread = f"{learned['lengthscale_min']:.2f} to {learned['lengthscale_max']:.2f}"
        lines.append(
            [
                *(data, f"{learned['lengthscale']:.2f} ({spread})", scores(learned)),
                f"{best['lengthscale']:.2f}",
                f"{scores(best)} ± {best['nll_se']:.3f}",
                f"{grid['error'].min():.3f}",
                f"{learned['grid_over_learning']:.0f} times longer",
            ]
        )
    header = ["data", "learned (folds)", "error / NLL", "grid, best NLL", "error / NLL"]
    return markdown([*header, "grid, lowest error", "grid takes"], lines)


def inducing(rows: pd.DataFrame) -> str:
    folds = rows[rows["kernel"] == "fixed"].groupby(["num_inducing", "selection"])
    cells = pd.DataFrame(
        {
            "error": 100 * folds["error"].mean(),
            "deviation": 100 * folds["error"].std(),
            "time": folds["time_ratio"].mean(),
        }
    ).apply(lambda row: f"{row.error:.1f} ± {row.deviation:.1f} ({row.time:.2f})", axis=1)
    wide = cells.unstack()[rows["selection"].unique()]
    return markdown(["M", *wide.columns], wide.reset_index().values)


def mixture(rows: pd.DataFrame) -> str:
    lines = []
    for (name, m), group in rows.groupby(["data", "m"], sort=False):
        folds = group.groupby("selector", sort=False)
        means = folds[["error", "seconds"]].mean()
        failed = (~group["converged"]).groupby(group["selector"]).sum()
        cells = [f"{100 * means.loc['k-means', 'error']:.1f}"]
        for selector in means.index[1:]:
            time = means.loc[selector, "seconds"] / means.loc["k-means", "seconds"]
            error = f"{100 * means.loc[selector, 'error']:.1f}"
            cells.append(f"{error} ({failed[selector]} of {len(group) // len(means)}; {time:.0f})")
        lines.append([name, f"{group['n'].iloc[0]} x {group['d'].iloc[0]}", m, *cells])
    return markdown(["data", "N x D", "M", *rows["selector"].unique()], lines)


def relevance(rows: pd.DataFrame) -> str:
    """Sets with noise inputs, by definition or appended; others have nothing to tell apart."""
    lines = []
    for _, row in rows[(rows["kind"] == "summary") & (rows["num_noise"] > 0)].iterrows():
        lines.append(
            [
                row["data"] + (f" + {row['appended']}" if row["appended"] else ""),
                row["priors"],
                f"{row['num_true']:.0f} / {row['num_noise']:.0f}",
                f"{row['auc']:.2f}",
                f"{row['ignored_true']:.0f} / {row['ignored_noise']:.0f}",
                f"{row['error_ard']:.3f} / {row['error_isotropic']:.3f}",
            ]
        )
    header = ["data", "priors", "true / noise inputs", "AUC of relevance"]
    return markdown([*header, "ignored, true / noise", "error, ARD / isotropic"], lines)
