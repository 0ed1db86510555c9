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
from table1 import PAPER
from tables_learning import TABLES as LEARNING
from tables_models import TABLES as MODELS
from tables_text import markdown

README = Path(__file__).parent.parent / "README.md"


def main(arguments: list[str]) -> None:
    old = README.read_text(encoding="utf-8")
    new = old
    for name, draw in TABLES.items():
        pattern = rf"(<!-- table {name} -->\n).*?(<!-- end -->)"
        if f"<!-- table {name} -->" not in old:
            sys.exit(f"README.md has no place for the table {name}")
        path = RESULTS / f"{SOURCES.get(name, name)}.csv"
        table = draw(pd.read_csv(path, keep_default_na=False))
        new = re.sub(pattern, lambda m, table=table: m[1] + table + "\n" + m[2], new, flags=re.S)
    if "--check" in arguments and new != old:
        sys.exit("README.md does not show the rows on disk: run python benchmarks/tables.py")
    README.write_text(new, encoding="utf-8")


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


TABLES = {
    **LEARNING,
    **MODELS,
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
SOURCES = {"quality_sets": "quality", **dict.fromkeys(("weights", "constant", "large"), "linear")}

if __name__ == "__main__":
    main(sys.argv[1:])
