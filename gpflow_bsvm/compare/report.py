"""Output of a comparison: a table to read, results.csv, results.json and pictures."""

from __future__ import annotations

import copy
import json
import math
import re
import tempfile
from collections.abc import Sequence, Set
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay

from .. import plotting
from ..atomic import whole_file
from ..metrics import METRICS
from ..optional import require
from .contests import contest, leaders
from .machine import provenance
from .protocol import Comparison, FoldScore

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Most classes of a confusion matrix that shows numbers, and letters of a class's name in it.
_MOST_NUMBERS, _LONGEST_NAME = 12, 12
#: Columns besides the metrics: heading and digits.
TIMES = {"train_seconds": ("train s", 3), "predict_us": ("pred µs/row", 0)}


def prepare_output(directory: Path) -> None:
    """
    Create the directory and test it, before any time is spent on training.

    :raise ValueError: if it cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise ValueError(f"cannot write to {directory}: {error.strerror or error}") from error


def frame(scores: Sequence[FoldScore]) -> Any:
    """:return: a pandas data frame, one row per data set, model and fold."""
    pandas = require("pandas")
    records = [asdict(score) | score.scores for score in scores]
    columns = ["dataset", "model", "fold", "status", *METRICS, *TIMES]
    return pandas.DataFrame(records, columns=columns)


def summary(scores: Sequence[FoldScore]) -> list[dict[str, Any]]:
    """
    :return: one record per data set and model, in the order of their first folds: the numbers of
        successful and of all folds, mean, standard deviation and median over the former (times:
        without fold 0, in which TensorFlow traces, if there are others), and the counts of statuses
        other than "ok".
    """
    records, values = [], [*METRICS, *TIMES]
    for (dataset, model), group in frame(scores).groupby(["dataset", "model"], sort=False):
        good = group[group.status.str.startswith("ok")]
        if len(good) > 1:
            good = good.astype(dict.fromkeys(TIMES, float))
            good.loc[good.fold == 0, list(TIMES)] = math.nan
        good, counts = good[values], group.status.value_counts()
        spread = good.std(ddof=0) if len(good) > 1 else good.mean() * math.nan  # one has none
        moments = {"mean": good.mean(), "std": spread, "median": good.median()}
        record = {"dataset": dataset, "model": model, "folds": len(group), "folds_ok": len(good)}
        record["notes"] = {k: int(v) for k, v in counts.items() if k != "ok"}
        for what, row in moments.items():
            record[what] = {name: _finite(row[name]) for name in values}
        records.append(record)
    return records


def table(comparison: Comparison) -> str:
    """:return: the comparison as lines of at most 110 characters; "*" marks `leaders`."""
    records = summary(comparison.fold_scores)
    stars = len(records) > 1 and not comparison.ended_early
    best = leaders(comparison, means_of(records)) if stars else {}
    metric_cells = {name: _column(name, records, best.get(name, set())) for name in METRICS}
    heading = f"{'model':<15}" + "".join(f"{metric.label:>13}" for metric in METRICS.values())
    lines = [_title(comparison), heading + "".join(f"{label:>12}" for label, _ in TIMES.values())]
    for number, record in enumerate(records):
        line = f"{record['model']:<15}"
        if record["folds_ok"] == 0:
            lines.append(f"{line} {next(iter(record['notes']))}"[:110])
            continue
        line += "".join(f"{cells[number]:>13}" for cells in metric_cells.values())
        for name, (_, digits) in TIMES.items():
            line += f"{record['median'][name]:>12.{digits}f}"
        lines.append(line)
    folds, done = comparison.settings.folds, max(record["folds"] for record in records)
    early = [f"  ended early, after {done} of {folds} folds"] if comparison.ended_early else []
    return "\n".join(lines + early + _footnotes(records))


def in_short(comparison: Comparison) -> list[str]:
    """:return: a line for each other model besides `BSVMClassifier`: who is ahead, and times."""
    ours, shown = "BSVMClassifier", comparison.held_out
    if ours not in shown or comparison.ended_early:
        return []
    times = {record["model"]: record["median"] for record in summary(comparison.fold_scores)}
    lines = []
    for other in [name for name in shown if name != ours]:
        pair = copy.copy(comparison)
        pair.held_out = {ours: shown[ours], other: shown[other]}
        words = [f"{METRICS[name].label} {_ahead(pair, name, ours)}" for name in ("nll", "error")]
        fit, predict = (times[ours][name] / times[other][name] for name in TIMES)
        words += [f"a fit takes {fit:.2g} times as long", f"a prediction {predict:.2g} times"]
        lines.append(f"  beside {other}: {', '.join(words)}")
    return [f"{ours}, by 95 % intervals over rows:", *lines] if lines else []


def _ahead(pair: Comparison, score: str, ours: str) -> str:
    """:return: a verdict on two models, from the rows that both predicted."""
    held = contest(pair, score)
    if held is None or len(held.level) != 1:
        return "level"
    return "better" if held.best == ours else "worse"


def _title(comparison: Comparison) -> str:
    settings, C, (N, D) = comparison.settings, len(comparison.labels), comparison.dataset.X.shape
    kernel = settings.kernel(D)
    fixed = f"fixed at lengthscale {kernel.lengthscale:.3g}, variance {kernel.variance:.3g}"
    num_inducing = min(settings.num_inducing, round(N * (1 - 1 / settings.folds)))
    return (
        f"{comparison.dataset.name}: N = {N}, D = {D}, {f'C = {C}, ' if C > 2 else ''}"
        f"{settings.folds} folds, M = {num_inducing}, kernel {'learnt' if kernel.learn else fixed}"
    )


def means_of(records: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """:return: the means in a `summary`, by score and model."""
    return {
        name: {one["model"]: one["mean"][name] for one in records if one["mean"][name] is not None}
        for name in METRICS
    }


def _column(name: str, records: list[dict[str, Any]], best: Set[str]) -> list[str]:
    """:return: "mean ± std" for each record, with a star for the best."""
    cells = []
    for record in records:
        mean, star = record["mean"][name], "*" if record["model"] in best else " "
        spread = "" if record["std"][name] is None else f"±{record['std'][name]:.3f}"
        cells.append("-  " if mean is None else f"{mean:.3f}{spread}{star}")
    return cells


def _footnotes(records: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"  {record['model']}, {count} of {record['folds']} folds: {note.removeprefix('ok: ')}"
        for record in records
        for note, count in record["notes"].items()
        if record["folds_ok"]
    ]
    return [line[:110] for line in lines]


def write(comparisons: Sequence[Comparison], directory: Path) -> None:
    """
    Write results.csv (one row per data set, model and fold) and results.json (summary, settings and
    provenance).

    :raise OSError: if the directory is gone or its disk full.
    """
    scores = [score for comparison in comparisons for score in comparison.fold_scores]
    with whole_file(directory / "results.csv") as file:
        file.write(frame(scores).to_csv(index=False).encode())
    record = {
        "settings": asdict(comparisons[0].settings) if comparisons else {},
        "provenance": provenance(),
        "summary": summary(scores),
    }
    with whole_file(directory / "results.json") as file:
        file.write((json.dumps(record, indent=2) + "\n").encode())


def draw(comparison: Comparison, path: Path | IO[bytes]) -> None:
    """
    Write a picture: reliability on all held-out rows, for more than two classes also the confusion
    matrix of the first model; error and negative log-likelihood against training time, with small
    marks for folds and a large one for their mean.

    :raise ImportError: without matplotlib.
    """
    _figure(comparison).savefig(path, dpi=130)


def _figure(comparison: Comparison) -> Any:
    C, records = len(comparison.labels), summary(comparison.fold_scores)
    fig, axes = plotting.figure(*((2, 2) if C > 2 else (1, 3)))
    if C > 2:
        _draw_confusion(axes[1], comparison, next(iter(comparison.held_out)))
    for number, record in enumerate(one for one in records if one["folds_ok"]):
        style: dict[str, Any] = {"label": record["model"], "color": f"C{number}"}
        style["linestyle"] = ("-", "--", ":")[number % 3]
        plotting.reliability_diagram(axes[0], *comparison.predictions(record["model"]), **style)
        _draw_times(axes[-2:], comparison, record, style)
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    folds = comparison.settings.folds
    name = _without_math(comparison.dataset.name)
    fig.suptitle(f"{name}: {folds} folds; small marks are single folds")
    return fig


def _without_math(text: str) -> str:
    """:return: a user's text whose dollar signs begin no formula."""
    return text.replace("$", r"\$")


def _draw_confusion(ax: Axes, comparison: Comparison, model: str) -> None:
    """How often rows of a true class (down) are taken for each class (across)."""
    y, P = comparison.predictions(model)
    few, names = len(comparison.labels) <= _MOST_NUMBERS, list(map(str, comparison.labels))
    ConfusionMatrixDisplay.from_predictions(
        y,
        P.argmax(axis=1),
        labels=np.arange(len(names)),
        display_labels=[_without_math(name[:_LONGEST_NAME]) for name in names],
        normalize="true",
        include_values=few,
        values_format=".0%",
        text_kw={"size": 7},
        cmap="Blues",
        colorbar=False,
        xticks_rotation=45.0 if max(map(len, names)) > 3 else 0.0,
        ax=ax,
    )
    ax.set_title(f"Confusion: {model}")


def _draw_times(
    axes: Any, comparison: Comparison, record: dict[str, Any], style: dict[str, Any]
) -> None:
    """Draw error and NLL against training time."""
    good = [one for one in comparison.fold_scores if one.model == record["model"] and one.ok]
    seconds = record["median"]["train_seconds"]
    for name, ax in zip(("error", "nll"), axes):
        values, what = [one.scores[name] for one in good], METRICS[name].label
        ax.plot([seconds] * len(values), values, ".", color=style["color"], alpha=0.5)
        ax.plot(seconds, record["mean"][name], marker="D", markersize=7, alpha=0.8, **style)
        ax.set(ylabel=f"held-out {what}", title=f"Held-out {what} against training time")
        ax.set(xscale="log", xlabel="training time [s]")


def picture_name(comparison: Comparison) -> str:
    """:return: a file name that is valid on all systems."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", comparison.dataset.name) + ".png"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
