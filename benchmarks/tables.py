"""Draw the README's tables from the rows in `benchmarks/results`.

python benchmarks/tables.py            rewrites the marked parts of README.md
python benchmarks/tables.py --check    fails where README.md and the rows disagree
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd
from common import RESULTS
from ranks import SCORES, summary, wide
from table1 import PAPER

README = Path(__file__).parent.parent / "README.md"


def main(arguments: list[str]) -> None:
    old = README.read_text(encoding="utf-8")
    new = old
    for name, draw in TABLES.items():
        pattern = rf"(<!-- table {name} -->\n).*?(<!-- end -->)"
        path = RESULTS / f"{SOURCES.get(name, name)}.csv"
        table = draw(pd.read_csv(path, keep_default_na=False))
        new = re.sub(pattern, lambda m, table=table: m[1] + table + "\n" + m[2], new, flags=re.S)
    if "--check" in arguments and new != old:
        sys.exit("README.md does not show the rows on disk: run python benchmarks/tables.py")
    README.write_text(new, encoding="utf-8")


def markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _step(rows: pd.DataFrame) -> str:
    """Medians over repeats of the ratio within a repeat, theirs over ours."""
    wide = rows.pivot(index=["batch", "repeat"], columns="method", values="step_us")
    header = ["batch", "step of", "GPflow step called from Python", "GPflow loop in a graph"]
    lines = []
    for batch in sorted(rows["batch"].unique()):
        for ours in ("SVI, augmented", "SVI, exact"):
            ratios = wide.loc[batch].div(wide.loc[batch][ours], axis=0).median()
            theirs = ["GPflow, one call a step", "GPflow, loop in a graph"]
            lines.append(
                [str(batch), ours, *(f"{ratios[name]:.1f} times longer" for name in theirs)]
            )
    return markdown(header, lines)


def _sweeps(rows: pd.DataFrame) -> str:
    rows = rows.copy()
    kernel = ["variance", "theta"]
    lines = []
    for (variance, theta), group in rows.groupby(kernel):
        medians = group.groupby("method")[["ms", "steps"]].median()
        exact = medians.loc["CAVI, Hinge exact"]
        cells = [f"{variance:g}, {theta:g}", f"{exact['steps']:.0f}"]
        for name in ("CAVI, Hinge augmented", "CAVI, Probit"):
            cells.append(_relative(medians.loc[name], exact))
        for kind in ("steps", "steps + ELBO"):
            peers = medians[medians.index.str.match(rf"GPflow .*, {re.escape(kind)}$")]
            cells.append(_relative(peers.loc[peers["ms"].idxmin()], exact))
        lines.append(cells)
    header = ["variance, theta", "exact: sweeps", "augmented", "probit, same engine"]
    return markdown([*header, "GPflow, steps only", "GPflow, steps + ELBO"], lines)


def _relative(method: pd.Series, exact: pd.Series) -> str:
    return f"{method['ms'] / exact['ms']:.1f} times longer ({method['steps']:.0f} steps)"


def _failure(rows: pd.DataFrame) -> str:
    steps = sorted(rows["learning_rate"].unique())
    lines = []
    for method, group in rows.groupby("method", sort=False):
        by_step = group.set_index("learning_rate")
        lines.append([method, *(_outcome(by_step.loc[step]) for step in steps)])
    return markdown(["method", *(f"step {step:g}" for step in steps)], lines)


def _outcome(row: pd.Series) -> str:
    if row["error"]:
        return f"**fails** at step {int(row['steps_done']) + 1}"
    return f"{100 * row['training_error']:.1f} % error"


def _memory(rows: pd.DataFrame) -> str:
    header = ["fits", "resident memory, MB", "traces of the sweep", "of the projection"]
    shown = rows[rows["fits"].isin([100, 200, 400, 600, 800, 1000])]
    lines = [[f"{value:.0f}" for value in row] for row in shown.to_numpy(float)]
    return markdown(header, lines)


def _monotone(rows: pd.DataFrame) -> str:
    header = ["bound", "kernel", "sets", "sweeps, median", "smallest rho", "largest relative fall"]
    lines = []
    for (bound, kernel), group in rows.groupby(["bound", "kernel"]):
        fall = group["largest_relative_fall"].max()
        cells = [bound, kernel, str(len(group)), f"{group['sweeps'].median():.0f}"]
        lines.append([*cells, f"{group['smallest_rho'].min():.2g}", f"{fall:.1g}" if fall else "0"])
    return markdown(header, lines)


def _table1(rows: pd.DataFrame) -> str:
    header = ["data", "n", "paper", "augmented, probit", "augmented, published", "exact, probit"]
    shown = [("augmented", "probit"), ("augmented", "published"), ("exact", "probit")]
    lines = []
    for name, (_, error, brier) in PAPER.items():
        group = rows[rows["data"] == name]
        cells = [name, str(group["n"].iloc[0]), f"{error:.2f} / {brier:.2f}"]
        for bound, link in shown:
            fit = group[(group["bound"] == bound) & (group["link"] == link)]
            mean, spread = fit[["error", "brier"]].mean(), fit[["error", "brier"]].std()
            cells.append(
                f"{mean['error']:.2f} ± {spread['error']:.2f} / "
                f"{mean['brier']:.2f} ± {spread['brier']:.2f}"
            )
        lines.append(cells)
    return markdown(header, lines)


def _compare(rows: pd.DataFrame) -> str:
    models = list(dict.fromkeys(rows["model"]))
    means = rows.groupby(["data", "model"], sort=False)[["error", "nll"]].mean()
    lines = []
    for name in dict.fromkeys(rows["data"]):
        scores = [means.loc[name, model] for model in models]
        lines.append([name, *(f"{score['error']:.3f} / {score['nll']:.3f}" for score in scores)])
    return markdown(["data", *models], lines)


def _classes(rows: pd.DataFrame) -> str:
    """Medians over repeats of the ratio within a repeat, theirs over ours."""
    wide = rows.pivot(index=["classes", "repeat"], columns="method", values="step_us")
    first = wide.loc[min(rows["classes"])]["SVI, exact"].median()
    lines = []
    for num_classes in sorted(rows["classes"].unique()):
        group = wide.loc[num_classes]
        names = ["GPflow, Softmax", "GPflow, RobustMax"]
        ratios = group[names].div(group["SVI, exact"], axis=0).median()
        lines.append(
            [
                str(num_classes),
                *(f"{ratios[name]:.1f} times longer" for name in names),
                f"{group['SVI, exact'].median() / first:.1f}",
                f"{group['SVI, one-vs-rest'].median() / first:.1f}",
            ]
        )
    header = ["classes", *names, "cost of a step, exact (C = 3 is 1)", "one-vs-rest"]
    return markdown(header, lines)


def _multiclass(rows: pd.DataFrame) -> str:
    ours = ["exact", "exact, penalty 8", "published", "one-vs-rest"]
    lines = []
    for name, group in rows.groupby("data", sort=False):
        ends = group.groupby(["method", "setting", "split"])["error"].apply(end)
        means = ends.groupby(["method", "setting"]).mean()
        best = {method: means[method].idxmin() for method in ("Softmax", "RobustMax")}
        target = pd.concat([ends[key] for key in best.items()], axis=1).min(axis=1)
        theirs = pd.concat([_first(group, *key, ends[key]) for key in best.items()], axis=1).min(
            axis=1
        )
        cells = [f"{100 * means[method, 'CAVI']:.2f} %" for method in ours]
        cells += [f"{100 * means[key]:.2f} %" for key in best.items()]
        for method in ours[:2]:
            mine = _first(group, method, "SVI", target)
            reached = int(mine.notna().sum())
            ratio = f"{(theirs / mine).median():.1f} times longer" if reached else ""
            cells.append(ratio + f" ({reached} of {len(mine)} splits)" * (reached < len(mine)))
        lines.append([name, *cells])
    times = [f"time, {method}" for method in ours[:2]]
    return markdown(["data", *ours, "Softmax", "RobustMax", *times], lines)


def end(trace: pd.Series) -> float:
    """A trained model's error; those of GPflow's peers never stop to fluctuate."""
    return trace.iloc[-5:].mean()


def _first(group: pd.DataFrame, method: str, setting: str, target: pd.Series) -> pd.Series:
    """:return: by split, seconds until the error is first at the target or below; NaN for never."""
    rows = group[(group["method"] == method) & (group["setting"] == setting)]
    below = rows[rows["error"] <= rows["split"].map(target)]
    return below.groupby("split")["seconds"].first().reindex(target.index)


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
    "quality": _quality,
    "quality_sets": _quality_sets,
    "robust": _robust,
    "relevance": _relevance,
    "lengthscale": _lengthscale,
    "inducing": _inducing,
    "classes": _classes,
    "multiclass": _multiclass,
    "compare": _compare,
    "step": _step,
    "sweeps": _sweeps,
    "failure": _failure,
    "memory": _memory,
    "monotone": _monotone,
    "table1": _table1,
}
#: Tables that are a second look at the rows of another.
SOURCES = {"quality_sets": "quality"}

if __name__ == "__main__":
    main(sys.argv[1:])
