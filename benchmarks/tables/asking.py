"""Tables of active learning."""

from __future__ import annotations

import itertools

import pandas as pd
from scipy.stats import wilcoxon

from .markdown import markdown, shows

POLICIES = {
    "variation_ratio": "variation ratio",
    "softmax_entropy": "entropy, softmax of means",
    "margin": "margin",
    "bald": "BALD",
    "random": "random",
}
#: The paper's pair: with variances, and without.
BAYESIAN, POINT = "variation_ratio", "softmax_entropy"
POINTWISE = "margin"


@shows("active")
def active(rows: pd.DataFrame) -> str:
    """Mean ranks of the mean error over seeds, and the paper's two policies, set by set."""
    lines = []
    for queries, errors in _errors(rows).groupby(level="queries"):
        ranks = errors.rank(axis=1).mean()
        gain = errors[POINT] - errors[BAYESIAN]
        counts = f"{(gain > 0).sum()} / {(gain == 0).sum()} / {(gain < 0).sum()}"
        p = wilcoxon(errors[POINT], errors[BAYESIAN]).pvalue
        lines.append([queries, *(f"{ranks[name]:.2f}" for name in POLICIES), counts, f"{p:.2g}"])
    better = "variation ratio better / equal / worse than that entropy, sets"
    return markdown(["queries", *POLICIES.values(), better, "p, Wilcoxon"], lines)


@shows("active")
def active_errors(rows: pd.DataFrame) -> str:
    """Error in %, mean over sets and seeds."""
    whole = 100 * rows.loc[rows["policy"] == "all", "error"].mean()
    lines = []
    for queries, errors in _errors(rows).groupby(level="queries"):
        means = 100 * errors.mean()
        lines.append([queries, *(f"{means[name]:.1f}" for name in POLICIES), f"{whole:.1f}"])
    return markdown(["queries", *POLICIES.values(), "all labels of the pool"], lines)


@shows("active")
def active_sets(rows: pd.DataFrame) -> str:
    """Error in % after 100 queries, set by set."""
    errors = 100 * _errors(rows).xs(100, level="queries")
    whole = 100 * rows[rows["policy"] == "all"].groupby("data")["error"].mean()
    lines = []
    for name, line in errors.iterrows():
        cells = [f"{value:.1f}" for value in line[list(POLICIES)]]
        least = min(cells, key=float)
        cells = [f"**{cell}**" if cell == least else cell for cell in cells]
        lines.append([name, *cells, f"{whole[name]:.1f}"])
    return markdown(["data", *POLICIES.values(), "all labels"], lines)


@shows("active")
def active_updates(rows: pd.DataFrame) -> str:
    """How far warm updates are from a refit."""
    rows = rows.dropna(subset=["refit_error"])
    lines = []
    for (queries, policy), part in rows.groupby(["queries", "policy"]):
        far = part[["mean", "variance", "probability", "decisions"]].median()
        errors = 100 * part[["error", "refit_error"]].mean()
        lines.append(
            [
                *(queries, POLICIES[policy], f"{far['mean']:.2f}", f"{far['variance']:.2f}"),
                *(f"{far['probability']:.3f}", f"{100 * far['decisions']:.1f} %"),
                f"{errors['error']:.2f} / {errors['refit_error']:.2f}",
                f"{part['tell_ms'].median():.0f}",
            ]
        )
    header = ["queries", "policy", "means, in deviations", "ratio of variances"]
    header += ["total variation of probabilities", "decisions that differ"]
    return markdown([*header, "error in %, updates / refit", "CPU of a batch, ms"], lines)


@shows("active")
def active_kernel(rows: pd.DataFrame) -> str:
    """The kernel chosen by leave-one-out density against the one that was given."""
    lines = []
    for queries, policy in itertools.product((20, 50, 100), (POINTWISE, BAYESIAN)):
        part = rows[rows["queries"] == queries].set_index(["data", "seed"])
        both = [part[part["policy"] == name] for name in (policy, f"{policy}, kernel as given")]
        cells = [f"{100 * one['error'].mean():.1f} / {one['nll'].mean():.3f}" for one in both]
        gain = both[1]["error"] - both[0]["error"]
        counts = f"{(gain > 0).sum()} / {(gain == 0).sum()} / {(gain < 0).sum()}"
        lines.append([queries, POLICIES[policy], *cells, counts])
    header = ["queries", "policy", "error in % / NLL, kernel chosen", "kernel as given"]
    return markdown([*header, "fewer / as many / more errors, sets and seeds"], lines)


@shows("few_labels")
def few_labels(rows: pd.DataFrame) -> str:
    """Error and NLL of ways to a kernel, means over sets and seeds."""
    ways = list(dict.fromkeys(rows["way"]))
    lines = []
    for (loss, labels), part in rows.groupby(["loss", "labels"], sort=False):
        means = part.groupby("way")[["error", "nll"]].mean()
        learned = part[part["way"] == "vem"]["variance"]
        cells = [f"{100 * means.error[way]:.1f} / {means.nll[way]:.2f}" for way in ways]
        lines.append([loss, labels, *cells, f"{(learned < 0.1).sum()} of {len(learned)}"])
    names = {"given": "as given", "vem": "`VEM`", "vem, priors": "`VEM`, default priors"}
    names |= {"guard": "that, where left-out density gains", "left out": "by left-out density"}
    return markdown(
        ["loss", "labels", *(names[way] for way in ways), "`VEM` to a variance below 0.1"],
        sorted(lines, key=lambda line: line[0]),
    )


def _errors(rows: pd.DataFrame) -> pd.DataFrame:
    """:return: mean error over seeds, a row for each number of queries and set."""
    rows = rows[rows["policy"].isin(POLICIES)]
    return rows.pivot_table(index=["queries", "data"], columns="policy", values="error")
