"""What a comparison leaves: a table to read, results.csv, results.json and pictures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from .. import plotting
from ..datasets import DataError
from ..metrics import METRICS
from ..optional import require
from .machine import provenance
from .protocol import Comparison, FoldScore

#: Columns beside the metrics: heading and digits.
_TIMES = {"train_seconds": ("train s", 3), "predict_us": ("pred us/row", 0)}


def prepare_output(directory: Path) -> None:
    """
    Make the directory and try it out, before any time is spent on training.

    :raise DataError: if it cannot be written.
    """
    probe = directory / ".gpflow-bsvm-probe"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DataError(f"cannot write to {directory}: {error.strerror or error}") from error


def frame(rows: Sequence[FoldScore]) -> Any:
    """:return: a pandas data frame, one row per data set, peer and fold."""
    pandas = require("pandas")
    records = []
    for row in rows:
        record = asdict(row)
        scores = record.pop("scores")
        times = {name: record.pop(name) for name in _TIMES}
        records.append(record | scores | times)
    columns = ["dataset", "peer", "fold", "status", *METRICS, *_TIMES]
    return pandas.DataFrame(records, columns=columns)


def summary(rows: Sequence[FoldScore]) -> list[dict[str, Any]]:
    """
    :return: one record per data set and peer, in the order of their first rows: how many folds
        went well of how many, mean, standard deviation and median over these, and how often
        each status other than "ok" was met.
    """
    records = []
    values = [*METRICS, *_TIMES]
    for (dataset, peer), group in frame(rows).groupby(["dataset", "peer"], sort=False):
        good = group[group.status.str.startswith("ok")]
        mean, std, median = good[values].mean(), good[values].std(ddof=0), good[values].median()
        records.append(
            {
                "dataset": dataset,
                "peer": peer,
                "folds": len(group),
                "folds_ok": len(good),
                "notes": {k: int(v) for k, v in group.status.value_counts().items() if k != "ok"},
                "mean": {name: _finite(mean[name]) for name in values},
                "std": {name: _finite(std[name]) for name in values},
                "median": {name: _finite(median[name]) for name in values},
            }
        )
    return records


def table(comparison: Comparison) -> str:
    """:return: the comparison as lines of at most 110 characters; "*" marks the best mean."""
    records = summary(comparison.rows)
    metric_cells = {name: _column(name, records) for name in METRICS}
    heading = f"{'model':<15}" + "".join(f"{metric.label:>13}" for metric in METRICS.values())
    lines = [_title(comparison), heading + "".join(f"{label:>12}" for label, _ in _TIMES.values())]
    for number, record in enumerate(records):
        line = f"{record['peer']:<15}"
        if record["folds_ok"] == 0:
            lines.append(f"{line} {next(iter(record['notes']))}"[:110])
            continue
        line += "".join(f"{cells[number]:>13}" for cells in metric_cells.values())
        for name, (_, digits) in _TIMES.items():
            line += f"{record['median'][name]:>12.{digits}f}"
        lines.append(line)
    return "\n".join(lines + _footnotes(records))


def _title(comparison: Comparison) -> str:
    dataset, settings = comparison.dataset, comparison.settings
    kernel = settings.kernel(dataset.X.shape[1])
    how = "learnt from" if kernel.learn else "fixed at"
    num_inducing, C = min(settings.num_inducing, _num_train(comparison)), len(comparison.labels)
    classes = f"C = {C}, " if C > 2 else ""
    return (
        f"{dataset.name}: N = {len(dataset.y)}, D = {dataset.X.shape[1]}, {classes}"
        f"{settings.folds} folds, M = {num_inducing}, kernel {how} lengthscale "
        f"{kernel.lengthscale:.3g}, variance {kernel.variance:.3g}"
    )


def _num_train(comparison: Comparison) -> int:
    return round(len(comparison.dataset.y) * (1 - 1 / comparison.settings.folds))


def _column(name: str, records: list[dict[str, Any]]) -> list[str]:
    """:return: "mean ± std" for each record, the best mean (as printed) with a star."""
    sign = -1 if METRICS[name].greater_is_better else 1
    means = [record["mean"][name] for record in records]
    printed = [math.inf if mean is None else sign * round(mean, 3) for mean in means]
    cells = []
    for record, mean, value in zip(records, means, printed):
        star = "*" if value == min(printed) and len(records) > 1 else " "
        spread = record["std"][name]
        cells.append("-  " if mean is None else f"{mean:.3f}±{spread:.3f}{star}")
    return cells


def _footnotes(records: list[dict[str, Any]]) -> list[str]:
    return [
        f"  {record['peer']}, {count} of {record['folds']} folds: {note.removeprefix('ok: ')}"[:110]
        for record in records
        for note, count in record["notes"].items()
        if record["folds_ok"]
    ]


def write(comparisons: Sequence[Comparison], directory: Path) -> None:
    """
    Write results.csv (one row per data set, peer and fold) and results.json (summary, settings and
    versions).

    :raise OSError: if the directory went away or is full.
    """
    rows = [row for comparison in comparisons for row in comparison.rows]
    frame(rows).to_csv(directory / "results.csv", index=False)
    record = {
        "settings": asdict(comparisons[0].settings) if comparisons else {},
        "provenance": provenance(),
        "summary": summary(rows),
    }
    (directory / "results.json").write_text(json.dumps(record, indent=2) + "\n")


def draw(comparison: Comparison, path: Path) -> None:
    """
    Write a picture: on all held-out rows the reliability, and for more than two classes the
    confusion matrix of `bsvm` (else of the first model); on fold 0 the way of the error, the
    negative log-likelihood and, for two classes, the ELBO against training time.

    :raise ImportError: without matplotlib.
    """
    fig, axes = plotting.figure(2, 2)
    for number, peer in enumerate(dict.fromkeys(row.peer for row in comparison.rows)):
        dash = ("-", "--", ":")[number % 3]
        style: dict[str, Any] = {"label": peer, "color": f"C{number}", "linestyle": dash}
        if peer in comparison.held_out:
            plotting.reliability_diagram(axes[0], *_held_out(comparison, peer), **style)
        _draw_times(axes, comparison, peer, style)
    if len(comparison.labels) > 2:
        _draw_confusion(axes[1], comparison)
        for ax in axes[2:]:  # first steps can be tenfold worse: show where the curves end
            ends = [float(np.asarray(line.get_ydata())[-1]) for line in ax.lines]
            ax.set_ylim(0, 3 * max(ends, default=0) or 1)
    folds = comparison.settings.folds
    fig.suptitle(f"{comparison.dataset.name}: {folds} folds; curves over time on the first")
    axes[0].legend(frameon=False, fontsize="small")
    fig.savefig(path, dpi=130)


def _held_out(comparison: Comparison, peer: str) -> list[AnyNDArray]:
    """:return: y [N] and P [N, C] over all folds."""
    return [np.concatenate(column) for column in zip(*comparison.held_out[peer])]


def _draw_confusion(ax: Any, comparison: Comparison) -> None:
    peers = list(comparison.held_out)
    if peers:
        peer = "bsvm" if "bsvm" in peers else peers[0]
        y, P = _held_out(comparison, peer)
        plotting.confusion_matrix(ax, y, P, comparison.labels)
        ax.set_title(f"{ax.get_title()}: {peer}")


def _draw_times(
    axes: Sequence[Any], comparison: Comparison, peer: str, style: dict[str, Any]
) -> None:
    trace = comparison.traces.get(peer)
    if trace is not None:
        if len(comparison.labels) == 2:
            num_train = _num_train(comparison)
            plotting.elbo_trace(axes[1], trace.seconds, trace.elbo, num_train, **style)
        plotting.error_against_time(axes[2], trace.seconds, trace.error, **style)
        plotting.error_against_time(axes[3], trace.seconds, trace.nll, what="NLL", **style)
        return
    for row in comparison.rows:
        if row.peer == peer and row.fold == 0 and row.ok:
            seconds, scores = [row.train_seconds], row.scores
            plotting.error_against_time(axes[2], seconds, [scores["error"]], **style)
            plotting.error_against_time(axes[3], seconds, [scores["nll"]], what="NLL", **style)


def picture_name(comparison: Comparison) -> str:
    """:return: a file name that is safe everywhere."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", comparison.dataset.name) + ".png"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
