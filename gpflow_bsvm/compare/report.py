"""What a comparison leaves: a table to read, results.csv, results.json and pictures."""

from __future__ import annotations

import importlib.metadata
import json
import math
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from .. import plotting
from ..datasets import DataError
from ..extras import require
from ..metrics import METRICS
from .protocol import Comparison, Row

_PACKAGES = ("gpflow_bsvm", "gpflow", "tensorflow", "tensorflow-probability", "scikit-learn")
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


def frame(rows: Sequence[Row]) -> Any:
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


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """
    :return: one record per data set and peer, in the order of their first rows: how many folds
        went well of how many, mean and standard deviation over these, and the notes.
    """
    records = []
    values = [*METRICS, *_TIMES]
    for (dataset, peer), group in frame(rows).groupby(["dataset", "peer"], sort=False):
        good = group[group.status.str.startswith("ok")]
        mean, std = good[values].mean(), good[values].std(ddof=0)
        records.append(
            {
                "dataset": dataset,
                "peer": peer,
                "folds": len(group),
                "folds_ok": len(good),
                "notes": sorted({status for status in group.status if status != "ok"}),
                "mean": {name: _finite(mean[name]) for name in values},
                "std": {name: _finite(std[name]) for name in values},
            }
        )
    return records


def table(comparison: Comparison) -> str:
    """:return: the comparison as lines of at most 110 characters; "*" marks the best value."""
    records = summary(comparison.rows)
    metric_cells = {name: _column(name, records) for name in METRICS}
    heading = f"{'model':<15}" + "".join(f"{metric.label:>14}" for metric in METRICS.values())
    lines = [_title(comparison), heading + "".join(f"{label:>12}" for label, _ in _TIMES.values())]
    for number, record in enumerate(records):
        line = f"{record['peer']:<15}"
        if record["folds_ok"] == 0:
            lines.append((line + f" {record['notes'][0]}")[:110])
            continue
        line += "".join(f"{cells[number]:>14}" for cells in metric_cells.values())
        for name, (_, digits) in _TIMES.items():
            line += f"{record['mean'][name]:>12.{digits}f}"
        lines.append(line)
    return "\n".join(lines + _footnotes(records))


def _title(comparison: Comparison) -> str:
    dataset, settings = comparison.dataset, comparison.settings
    kernel = settings.kernel(dataset.X.shape[1])
    how = "learnt from" if kernel.learn else "fixed at"
    first = f"{dataset.name}: N = {len(dataset.y)}, D = {dataset.X.shape[1]}"
    return (
        f"{first}, {settings.folds} folds, M = {settings.num_inducing}, kernel {how} lengthscale "
        f"{kernel.lengthscale:.3g}, variance {kernel.variance:.3g}"
    )


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
    lines = []
    for record in records:
        bad = record["folds"] - record["folds_ok"]
        if bad and record["folds_ok"]:
            lines.append(f"  {record['peer']}: mean of {record['folds_ok']} of {record['folds']}")
        if record["folds_ok"]:
            lines += [f"  {record['peer']}: {note}"[:110] for note in record["notes"]]
    return lines


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
        "versions": versions(),
        "summary": summary(rows),
    }
    (directory / "results.json").write_text(json.dumps(record, indent=2) + "\n")


def versions() -> dict[str, str]:
    """:return: version by package, and Python's."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # run from a source tree
            found[package] = "unknown"
    return found


def draw(comparison: Comparison, path: Path) -> None:
    """
    Write a picture: reliability on all held-out rows, error against training time and the way of
    the ELBO, these two on fold 0.

    :raise ImportError: without matplotlib.
    """
    fig, (left, middle, right) = plotting.figure(3)
    num_train = round(len(comparison.dataset.y) * (1 - 1 / comparison.settings.folds))
    peers = list(dict.fromkeys(row.peer for row in comparison.rows))
    for number, peer in enumerate(peers):
        style = {"label": peer, "color": f"C{number}"}
        if peer in comparison.held_out:
            y, p = (np.concatenate(column) for column in zip(*comparison.held_out[peer]))
            plotting.reliability_diagram(left, y, p, **style)
        if peer in comparison.traces:
            trace = comparison.traces[peer]
            plotting.error_against_time(middle, trace.seconds, trace.error, **style)
            plotting.elbo_trace(right, trace.seconds, trace.elbo, num_train, **style)
        else:
            first = [row for row in comparison.rows if row.peer == peer and row.fold == 0 and row.ok]
            for row in first:
                error = row.scores["error"]
                plotting.error_against_time(middle, [row.train_seconds], [error], **style)
    fig.suptitle(comparison.dataset.name)
    left.legend(frameon=False, fontsize="small")
    fig.savefig(path, dpi=150)


def picture_name(comparison: Comparison) -> str:
    """:return: a file name that is safe everywhere."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", comparison.dataset.name) + ".png"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
