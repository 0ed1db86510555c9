"""Tables of the suites: what papers print, what is measured, and what differences are worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
from figures.quality import peers
from ranking import pairs, ranks, wide
from suites import wenzel2017 as table1_suite
from suites.wistuba2018 import ADAM, NATURAL, QUICK, SLOW

from .markdown import markdown, shows
from .ranked import rank_lines
from .scores import TABLE1
from .suite_means import SCORES, by_source, complete, shown

#: Mean ranks in accuracy over 68 sets that Wistuba and Rawat (2018) print in Table 1.
PRINTED_RANKS = (1.96, 1.68, 2.33)
#: Differences of the error up to this are none.
ROPE = 0.01
#: Error and Brier score that Wenzel et al. (2017) print for ECM, GPC and SVM + Platt.
OTHERS = {
    "breast_cancer": ((0.27, 0.19), (0.27, 0.18), (0.27, 0.19)),
    "diabetis": ((0.25, 0.17), (0.23, 0.15), (0.24, 0.16)),
    "flare": ((0.36, 0.25), (0.36, 0.24), (0.36, 0.24)),
    "german": ((0.25, 0.17), (0.25, 0.17), (0.27, 0.18)),
    "heart": ((0.19, 0.14), (0.16, 0.12), (0.17, 0.12)),
    "splice": ((0.11, 0.18), (0.32, 0.40), (0.14, 0.11)),
    "waveform": ((0.10, 0.15), (0.10, 0.06), (0.10, 0.06)),
}


@shows("wistuba2018")
def wistuba_ranks(rows: pd.DataFrame) -> str:
    """Of the paper's three methods, in accuracy."""
    printed = ["printed", 68, *(f"{rank:.2f}" for rank in PRINTED_RANKS), ""]
    three = ("one-vs-rest", "bsvm", "svgp-robustmax")
    softmax = (*three[:2], "svgp")
    adam = ("adam-one-vs-rest", "adam-bsvm-published", "adam-svgp")
    shown = {
        "natural gradients, SVGP with Softmax": complete(rows, softmax),
        "the same, sets of the same rows as one": by_source(complete(rows, softmax)),
        "natural gradients, SVGP with RobustMax": complete(rows, three),
        "Adam, the paper's objective, RobustMax": complete(rows, adam),
    }
    lines = [[name, *_mean_ranks(means)] for name, means in shown.items() if len(means)]
    header = ["mean rank", "sets", "binary, one-vs-rest", "multi-class", "SVGP", "p (Friedman)"]
    return markdown(header, [printed, *lines])


def _mean_ranks(means: pd.DataFrame) -> Iterable[object]:
    found, p_value = ranks(wide(means, "error"))
    return len(means) // len(found), *(f"{rank:.2f}" for rank in found), f"{p_value:.1g}"


@shows("wistuba2018")
def wistuba2018(rows: pd.DataFrame) -> str:
    """All methods in all scores, and how many fits failed."""
    methods = shown(rows)
    lines = rank_lines(complete(rows, methods), SCORES)
    fits = rows[rows["method"].isin(methods)]
    failed = fits["status"].str.startswith("failed").groupby(fits["method"]).agg(["sum", "size"])
    ends = (f"{failed.loc[name, 'sum']} of {failed.loc[name, 'size']}" for name in methods)
    return markdown(
        ["mean rank (sets won)", *methods, "p (Friedman)"],
        [*lines, ["fits that failed", *ends, ""]],
    )


@shows("wistuba2018")
def wistuba_pairs(rows: pd.DataFrame) -> str:
    """The multi-class machine against the others in error; a split that fails counts as 1."""
    failed = rows["status"].str.startswith("failed")
    rows = rows.assign(error=rows["error"].mask(failed, 1.0))
    table = wide(complete(rows, shown(rows)), "error")
    return _paired(table, "bsvm", [name for name in table if name != "bsvm"], 100, " %")


def _paired(
    table: pd.DataFrame,
    first: str,
    others: Sequence[str],
    unit: float,
    name: str,
    rope: float = ROPE,
) -> str:
    lines = [
        [
            f"{pair.first} - {pair.second}",
            f"{unit * pair.difference:+.2f}{name}",
            f"{unit * pair.low:+.2f} to {unit * pair.high:+.2f}{name}",
            *(f"{value:.2f}" for value in (pair.better, pair.equal, pair.worse)),
        ]
        for pair in pairs(table, first, others, rope)
    ]
    around = f"within {unit * rope:g}{name}"
    header = ["difference", "mean", "95 % interval", "P(better)", f"P({around})", "P(worse)"]
    return markdown(header, lines)


@shows("wistuba2018")
def wistuba_times(rows: pd.DataFrame) -> str:
    """Ratios of processor seconds to those of the multi-class machine, over sets."""
    means, lines = complete(rows, shown(rows)), []
    fits = wide(means, "seconds")
    whole = wide(
        means.assign(seconds=means["seconds"] + means["first_seconds"].fillna(0)), "seconds"
    )
    for name, table in {"a fit": fits, "the first, with tracing": whole}.items():
        ratios = table.div(table["bsvm"], axis=0).drop(columns="bsvm")
        cells = (
            f"{row.median():.2g} ({row.min():.2g} to {row.max():.2g})" for _, row in ratios.items()
        )
        lines.append([name, *cells])
    return markdown(["time, that of bsvm is 1", *(name for name in fits if name != "bsvm")], lines)


@shows("wistuba2018")
def wistuba_sets(rows: pd.DataFrame) -> str:
    """Errors in %; RobustMax where it was fitted."""
    means = wide(complete(rows, QUICK), "error")
    means = means.join(rows.pivot_table("error", "data", "method")[[*SLOW]])[[*NATURAL]]
    about = rows.dropna(subset=["n"]).groupby("data")[["n", "d", "classes"]].first().astype(int)
    lines = []
    for name in means.index:
        cells = (f"{100 * value:.1f}" if pd.notna(value) else "-" for value in means.loc[name])
        lines.append([name, " / ".join(map(str, about.loc[name])), *cells])
    return markdown(["error in %", "N / D / C", *NATURAL], lines)


@shows("wistuba2018")
def wistuba_adam(rows: pd.DataFrame) -> str:
    """Errors in % of the paper's arm, and its time, beside natural gradients'."""
    adam = [name for name in ADAM if name in set(rows["method"])]
    if not adam:
        return "(No rows yet.)"
    shown = [*adam, "bsvm"]
    means = complete(rows[rows["split"] == 0], shown)
    errors, seconds = wide(means, "error")[shown], wide(means, "seconds")[shown]
    lines = [[name, *(f"{100 * value:.1f}" for value in errors.loc[name])] for name in errors.index]
    lines.append(["mean", *(f"{100 * value:.1f}" for value in errors.mean())])
    ratios = seconds.div(seconds["bsvm"], axis=0).median()
    lines.append(["time, bsvm is 1", *(f"{ratio:.3g}" for ratio in ratios)])
    return markdown(["error in %", *shown[:-1], "bsvm, natural gradients"], lines)


@shows("wenzel2017")
def wenzel2017(rows: pd.DataFrame) -> str:
    """Error / Brier score, the paper's in brackets; time against Algorithm 1's on these folds."""
    methods = [*table1_suite.SPARSE[:2], *table1_suite.DENSE, table1_suite.SPARSE[2]]
    rows, lines = rows[rows["status"] == "ok"], []
    for name in table1_suite.SETS:
        group = rows[rows["data"] == name]
        means = group.groupby("method")[["error", "brier"]].mean()
        folds = group.groupby("method").size()
        printed = dict(zip(("ecm", "gpc", "svm-platt"), OTHERS[name])) | {"s-bsvm": TABLE1[name]}
        times = _same_folds(group)
        cells = (_cell(means, folds, method, printed.get(method), times) for method in methods)
        lines.append([name, folds.max(), *cells])
    return markdown(["data", "folds", *methods], lines)


def _same_folds(group: pd.DataFrame) -> pd.Series:
    """:return: by method, its time as a multiple of Algorithm 1's on the folds that it has."""
    seconds = group.pivot(index="split", columns="method", values="seconds")
    first = seconds["s-bsvm"]
    return pd.Series({m: s.mean() / first[s.notna()].mean() for m, s in seconds.items()})


def _cell(
    means: pd.DataFrame, folds: pd.Series, method: str, printed: tuple | None, times: pd.Series
) -> str:
    if method not in means.index:
        return "-"
    error, brier = means.loc[method]
    text = f"{error:.2f} / {brier:.2f}"
    if printed:
        text += f" ({printed[0]:.2f} / {printed[1]:.2f})"
    text += f", {times[method]:.2g}"
    return text + (f", {folds[method]} of them" if folds[method] < folds.max() else "")


@shows("quality")
def quality_pairs(rows: pd.DataFrame) -> str:
    """`BSVMClassifier` against its peers in NLL, over the sets that all were fitted to."""
    table = wide(peers(rows), "nll")
    return _paired(table, "bsvm", [name for name in table if name != "bsvm"], 1, "")
