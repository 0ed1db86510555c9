"""Tables of predictive quality."""

from __future__ import annotations

import numpy as np
import pandas as pd
from figures.multiclass import end
from figures.quality import BEFORE, SCORES, peers

from .markdown import longer, markdown, scores, shows
from .ranked import rank_lines

#: Error and Brier score of the S-BSVM that Wenzel et al. (2017) print in Table 1.
TABLE1 = {
    "breast_cancer": (0.26, 0.18),
    "diabetis": (0.22, 0.16),
    "flare": (0.36, 0.22),
    "german": (0.24, 0.17),
    "heart": (0.16, 0.13),
    "splice": (0.13, 0.17),
    "waveform": (0.09, 0.06),
}
#: Error in % of VI-BSVM, LibSVM and GPC in Wenzel et al. (2016).
BATCH = {
    "sonar": (12.5, 13.5, 19.5),
    "crabs": (1.0, 1.0, 3.1),
    "pima": (22.8, 24.7, 22.8),
    "usps_3vs5": (2.0, 1.6, 2.3),
}


@shows("compare")
def compare(rows: pd.DataFrame) -> str:
    means = rows.groupby(["data", "model"], sort=False)[["error", "nll"]].mean()
    models = rows["model"].unique()
    lines = (
        [name, *(scores(means.loc[name, model]) for model in models)]
        for name in rows["data"].unique()
    )
    return markdown(["data", *models], lines)


@shows("quality")
def quality(rows: pd.DataFrame) -> str:
    """Mean ranks, and in how many sets a method is the best."""
    return _ranked(peers(rows))


@shows("quality")
def offset(rows: pd.DataFrame) -> str:
    """Where the constant in the kernel moves the error by half a point or the NLL by .01."""
    shown = ["bsvm", BEFORE, "svgp", "svgp, offset"]
    scored = rows.set_index(["data", "method"])[["error", "nll"]]
    table = scored.unstack("method").reindex(rows["data"].unique())
    moved = (table.xs("bsvm", axis=1, level=1) - table.xs(BEFORE, axis=1, level=1)).abs()
    far = (moved["error"] >= 0.005) | (moved["nll"] >= 0.01)
    mean = table.mean()[table.notna().all()]
    names = far.index[far]
    lines = [[name, *(_scores(table.loc[name], method) for method in shown)] for name in names]
    lines.append([f"mean of {len(table)} sets", *(_scores(mean, method) for method in shown)])
    return markdown(["error / NLL", *shown], lines)


def _scores(row: pd.Series, method: str) -> str:
    known = ("nll", method) in row.index and pd.notna(row["nll", method])
    return scores(row.xs(method, level=1)) if known else "-"


@shows("quality")
def unfloored(rows: pd.DataFrame) -> str:
    """NLL of the Gaussian processes on the sets to which all of these were fitted, and means."""
    methods = ["bsvm", "svgp", "svgp, no floor"]
    table = rows.pivot(index="data", columns="method", values="nll")[methods].dropna()
    lines = [[name, *(f"{nll:.3f}" for nll in row)] for name, row in table.iterrows()]
    ranks = table.round(6).rank(axis=1).mean()
    lines.append(["mean", *(f"{mean:.4f}" for mean in table.mean())])
    lines.append(["mean rank", *(f"{rank:.2f}" for rank in ranks)])
    return markdown(["NLL", *methods], lines)


@shows("calibration")
def floors(rows: pd.DataFrame) -> str:
    """ECE beside its value for perfect calibration, and confidence beside accuracy; means."""
    rows = rows.assign(excess=rows["ece"] - rows["floor"], far=rows["gap"].abs())
    means = rows.groupby("method")[["ece", "floor", "excess", "gap", "far"]].mean()
    ranks = rows.pivot(index="data", columns="method", values="ece").rank(axis=1).mean()
    of_excess = rows.pivot(index="data", columns="method", values="excess").rank(axis=1).mean()
    lines = [
        [
            method,
            *(f"{value:.4f}" for value in row),
            f"{ranks[method]:.2f}",
            f"{of_excess[method]:.2f}",
        ]
        for method, row in means.iterrows()
    ]
    head = ["ECE", "its floor", "excess", "confidence - accuracy", "its size on a set"]
    return markdown(["mean of sets", *head, "rank in ECE", "in excess"], lines)


@shows("few_rows")
def few_rows(rows: pd.DataFrame) -> str:
    """NLL by rows: ours, and by how much it is that of the better of the two peers."""
    found = rows.groupby(["data", "n", "method"])["nll"].mean().unstack("method")
    ratio = found["bsvm"] / found[["logistic", "svc, platt"]].min(axis=1)
    table = ratio.unstack("n").reindex(rows["data"].unique())
    means = found.groupby("n").mean()
    cells = lambda row, digits: [f"{v:.{digits}f}" if pd.notna(v) else "-" for v in row]  # noqa: E731
    lines = [[f"NLL, {name}", *cells(means[name], 3)] for name in rows["method"].unique()]
    lines += [[f"ratio, {name}", *cells(row, 2)] for name, row in table.iterrows()]
    lines.append(["ratio, geometric mean", *cells(np.exp(np.log(table).mean()), 2)])
    return markdown(["rows", *table.columns], lines)


@shows("fit_time")
def fit_time(rows: pd.DataFrame) -> str:
    """Ratios of the second fit's time, over sets: median, least and greatest."""
    times = rows.pivot_table(index=["data", "n"], columns="method", values="again")
    lines = []
    for label, low, high in (("below 1000", 0, 1000), ("to 3000", 1000, 3000), ("more", 3000, 1e9)):
        sizes = times.index.get_level_values("n")
        part = times[(sizes >= low) & (sizes < high) & times["svgp"].notna().to_numpy()]
        cells = (_ratios(part["bsvm"] / part[peer]) for peer in ("svgp", "svc, platt"))
        lines.append([label, len(part), *cells])
    return markdown(["rows", "sets", "bsvm / svgp", "bsvm / (svc, platt)"], lines)


def _ratios(ratios: pd.Series) -> str:
    return f"{ratios.median():.1f} ({ratios.min():.1f} to {ratios.max():.1f})"


@shows("seconds")
def seconds_felt(rows: pd.DataFrame) -> str:
    """Seconds of the classifier now, at an older version, and of its peers, by line."""
    ours = rows["method"].isin(["BSVMClassifier", "first", "second"])
    named = rows.assign(what=rows["line"].str.split(":").str[0] + ", " + rows["data"])
    named["what"] += np.where(named["method"].isin(["first", "second"]), ": " + named["method"], "")
    named["what"] = named["what"].replace("predictions, 1 rows", "prediction of one row")
    times = named[ours].pivot(index="what", columns="version", values="seconds")
    lines = []
    for what, time in times.iterrows():
        others = named[(named["what"] == what) & ~ours & (named["version"] == "this")]
        peers = [f"{row.method} {_short(row.seconds)}" for row in others.itertuples()]
        lines.append([what, _short(time["this"]), _short(time["older"]), "; ".join(peers)])
    return markdown(["seconds", "BSVMClassifier", "the same at fc5e60e", "peers"], lines)


def _short(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"


@shows("fit_time")
def fit_sizes(rows: pd.DataFrame) -> str:
    """Ratios on generated data of 20 inputs, by size."""
    rows = rows[rows["data"] == "make_classification"]
    times = rows.pivot(index="n", columns="method", values="again")
    first = rows.pivot(index="n", columns="method", values="first")["bsvm"]
    lines = [
        [
            n,
            *(_times(row["bsvm"] / row[peer]) for peer in ("svc, no grid", "boosting")),
            _times(first[n] / row["bsvm"]),
        ]
        for n, row in times.iterrows()
    ]
    return markdown(["rows", "bsvm / (svc, no grid)", "bsvm / boosting", "first / again"], lines)


@shows("fit_time")
def expected_times(rows: pd.DataFrame) -> str:
    """Seconds of a first and of a second fit, of sets from few rows to many and of many classes."""
    ours = rows[rows["method"] == "bsvm"].set_index(["data", "n"])
    lines = [
        [
            f"`{name}`",
            n,
            _COLUMNS[name],
            row["classes"],
            f"{row['first']:.0f}",
            f"{row['again']:.1f}",
        ]
        for (name, n), row in ours.iterrows()
        if name in _COLUMNS
    ]
    head = ["data", "rows", "columns", "classes", "first of its kind", "second"]
    return markdown(head, sorted(lines, key=lambda line: (line[3], line[1])))


#: Of the sets that `expected_times` shows.
_COLUMNS = {
    "breast_cancer": 9,
    "sonar": 60,
    "german": 20,
    "banana": 2,
    "phoneme": 5,
    "make_classification": 20,
    "iris": 4,
    "glass": 9,
    "car": 6,
    "vowel": 13,
}


def _times(value: float) -> str:
    return f"{value:.2g}" if pd.notna(value) else "-"


def _ranked(rows: pd.DataFrame) -> str:
    methods = rows["method"].unique()
    return markdown(["mean rank (sets won)", *methods, "p (Friedman)"], rank_lines(rows, SCORES))


@shows("consistency")
def consistency(rows: pd.DataFrame) -> str:
    sizes = rows["n"].unique()
    lines = []
    for (inputs, classes), group in rows.groupby(["inputs", "classes"]):
        errors = group.pivot(index="method", columns="n", values="rmse").reindex(columns=sizes)
        for number, name in enumerate(rows["method"].unique()):
            cells = (_three(errors.loc[name, n]) for n in sizes)
            lines.append([f"{inputs}, {classes}" if number == 0 else "", name, *cells])
    return markdown(["inputs, classes", "method", *sizes], lines)


def _three(value: float) -> str:
    return f"{value:.3f}".removeprefix("0") if pd.notna(value) else "-"


@shows("quality")
def quality_sets(rows: pd.DataFrame) -> str:
    rows, lines = peers(rows), []
    for name, group in rows.groupby("data", sort=False):
        about = group.iloc[0]
        cells = (scores(row) for _, row in group.iterrows())
        lines.append([name, f"{about['n']} / {about['classes']}", *cells])
    return markdown(["data", "rows / classes", *rows["method"].unique()], lines)


@shows("multiclass")
def multiclass(rows: pd.DataFrame) -> str:
    """GPflow's peers with the best of their optimisers; times to the lower of the two errors."""
    ours = ["exact", "exact, penalty 8", "published", "one-vs-rest"]
    timed = ours[:2]
    lines = []
    for name, group in rows.groupby("data", sort=False):
        ends = group.groupby(["method", "setting", "split"])["error"].apply(end)
        means = ends.groupby(["method", "setting"]).mean()
        best = [(method, means[method].idxmin()) for method in ("Softmax", "RobustMax")]
        shown = [*((method, "CAVI") for method in ours), *best]
        target = pd.concat([ends[key] for key in best], axis=1).min(axis=1)
        arrivals = [_first(group, *key, ends[key]) for key in best]
        theirs = pd.concat(arrivals, axis=1).min(axis=1)
        ratios = (theirs / _first(group, method, "SVI", target) for method in timed)
        lines.append([name, *(f"{100 * means[key]:.2f} %" for key in shown), *map(_ratio, ratios)])
    times = (f"time, {method}" for method in timed)
    return markdown(["data", *ours, "Softmax", "RobustMax", *times], lines)


@shows("published")
def published(rows: pd.DataFrame) -> str:
    """Where the objective ends, its largest fall from one sweep to the next, held-out error."""
    errors = rows[rows["kind"].str.startswith("error")].set_index(["kind", "curve"])["y"]
    rows = rows[rows["kind"].str.startswith("sweep")]
    kinds = [kind.removeprefix("sweep ") for kind in rows["kind"].unique()]
    lines = []
    for name, group in rows.groupby("curve", sort=False):
        curves = [group.loc[group["kind"] == f"sweep {kind}", "y"].to_numpy() for kind in kinds]
        falls = (max(0, (curve[:-1] - curve[1:]).max()) for curve in curves)
        wrong = (errors[f"error {kind}", f"{name}; probability"] for kind in kinds)
        parts = zip(curves, falls, wrong)
        cells = (f"{curve[-1]:.0f} ({fall:.0f}), {100 * e:.1f} %" for curve, fall, e in parts)
        lines.append([name, *cells])
    return markdown(["objective, sweep", *(f"variance, lengthscale {k}" for k in kinds)], lines)


def _ratio(ratios: pd.Series) -> str:
    """Over splits; NaN where the target is not reached."""
    reached = ratios.count()
    text = longer(ratios.median()) if reached else ""
    return text + f" ({reached} of {len(ratios)} splits)" * (reached < len(ratios))


def _first(group: pd.DataFrame, method: str, setting: str, target: pd.Series) -> pd.Series:
    """:return: by split, seconds until the error is first at the target or below; NaN for never."""
    rows = group[(group["method"] == method) & (group["setting"] == setting)]
    below = rows[rows["error"] <= rows["split"].map(target)]
    return below.groupby("split")["seconds"].first().reindex(target.index)
