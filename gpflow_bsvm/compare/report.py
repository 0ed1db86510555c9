"""
The output of a comparison: a table, sentences, results.csv and results.json. Pairwise tests of
models are the basis of all stars and sentences.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from scipy import stats

from ..atomic import whole_file
from ..datasets import Dataset
from ..metrics import Loss
from ..optional import require
from .machine import provenance
from .protocol import Comparison, FoldScore, Held
from .registry import PEERS, WITHOUT_M

#: Headings and digits of the columns other than metrics.
TIMES = {"train_seconds": ("train s", 3), "predict_us": ("pred µs/row", 0)}
#: Level of all intervals.
LEVEL = 0.95


class Interval(NamedTuple):
    """A mean over rows, and its confidence interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Contest:
    """
    Models in order of mean loss, compared by one score on the same held-out rows.

    :ivar behind: for each pair (model, other), the mean over rows of the model's loss minus the
        other model's loss. The paired t intervals have level 1 - 0.05 / P for P pairs, so that all
        together hold with 95 % (Bonferroni).
    """

    score: str  #: a name in `Comparison.losses`
    num_rows: int  #: number of rows that all models predict
    losses: dict[str, Interval]  #: mean loss of each model, with a 95 % interval
    behind: dict[tuple[str, str], Interval]

    def verdict(self, model: str, other: str) -> str:
        """:return: "better" or "worse" if the pair's interval excludes 0, else "level"."""
        lost = self.behind[model, other]
        return "worse" if lost.low > 0 else "better" if lost.high < 0 else "level"

    def better(self, model: str) -> list[str]:
        """:return: all models better than this one."""
        return [one for one in self.losses if one != model and self.verdict(model, one) == "worse"]

    @property
    def leaders(self) -> list[str]:
        """:return: the models that no model beats, first the one with the least mean loss."""
        return [name for name in self.losses if not self.better(name)]


def contests(comparison: Comparison) -> list[Contest]:
    """
    Compare all pairs of models on held-out rows. The intervals ignore the variation over training
    sets. Only models with predictions for the largest number of folds take part, on the folds that
    all of them share.

    :return: a contest for each score; empty if no model has predictions.
    """
    folds = _in_common(comparison)
    losses = comparison.losses.items()
    return [_contest(score, loss, folds) for score, loss in losses] if folds else []


def _contest(score: str, loss: Loss, folds: dict[str, list[Held]]) -> Contest:
    rows = {name: np.concatenate([loss(y, P) for y, P in own]) for name, own in folds.items()}
    means = {name: float(own.mean()) for name, own in rows.items()}
    order = sorted(rows, key=means.__getitem__)
    pairs = list(permutations(order, 2))
    level = 1 - (1 - LEVEL) / max(1, len(pairs) // 2)
    return Contest(
        score,
        len(rows[order[0]]),
        {name: _interval(rows[name], LEVEL) for name in order},
        {(one, other): _interval(rows[one] - rows[other], level) for one, other in pairs},
    )


def _in_common(comparison: Comparison) -> dict[str, list[Held]]:
    """:return: labels and predictions on the shared folds, for models with the most folds."""
    most = max(map(len, comparison.held_out.values()), default=0)
    full = {name: found for name, found in comparison.held_out.items() if len(found) == most}
    numbers = range(comparison.settings.folds)
    shared = [k for k in numbers if all(k in found for found in full.values())]
    return {name: [found[k] for k in shared] for name, found in full.items() if shared}


def _interval(values: AnyNDArray, level: float) -> Interval:
    """:return: Student's t interval; if all values are equal, only their mean."""
    mean = float(values.mean())
    if len(values) < 2 or not np.ptp(values):
        return Interval(mean, mean, mean)
    low, high = stats.ttest_1samp(values, 0).confidence_interval(level)
    return Interval(mean, float(low), float(high))


def frame(scores: Sequence[FoldScore]) -> Any:
    """:return: a pandas data frame with one row per data set, model and fold."""
    records = [asdict(score) | score.scores for score in scores]
    metrics = scores[0].scores if scores else ()
    columns = ["dataset", "model", "fold", "status", *metrics, *TIMES, "last_gain"]
    return require("pandas").DataFrame(records, columns=columns)


def summary(scores: Sequence[FoldScore]) -> list[dict[str, Any]]:
    """
    :return: one record per data set and model, in order of appearance: numbers of successful folds
        and of all folds; mean, standard deviation and median over successful folds; the largest
        `last_gain`; counts of statuses other than "ok". With two or more successful folds, times
        omit fold 0, where TensorFlow traces its graphs.
    """
    records = []
    for (dataset, model), group in frame(scores).groupby(["dataset", "model"], sort=False):
        good = group[group.status.str.startswith("ok")]
        values = good.drop(columns=["dataset", "model", "fold", "status", "last_gain"])
        if len(good) > 1:
            values[list(TIMES)] = values[list(TIMES)].where(good.fold > 0)
        spread = values.std(ddof=0) if len(good) > 1 else values.std()  # NaN for one fold
        counts = group.status.value_counts()
        moments = {"mean": values.mean(), "std": spread, "median": values.median()}
        record: dict[str, Any] = {
            "dataset": dataset,
            "model": model,
            "folds": len(group),
            "folds_ok": len(good),
            "last_gain": _finite(good.last_gain.max()),
            "notes": {k: int(v) for k, v in counts.items() if k != "ok"},
        }
        for what, row in moments.items():
            record[what] = {name: _finite(value) for name, value in row.items()}
        records.append(record)
    return records


def table(comparison: Comparison) -> str:
    """:return: the comparison as lines of text; "*" marks `Contest.leaders`."""
    records = summary(comparison.fold_scores)
    metrics = comparison.metrics
    stars = len(records) > 1 and not comparison.ended_early
    best = {held.score: held.leaders for held in contests(comparison)} if stars else {}
    heading = f"{'model':<15}" + "".join(f"{metric.label:>14}" for metric in metrics.values())
    lines = [_title(comparison), heading + "".join(f"{label:>12}" for label, _ in TIMES.values())]
    for record in records:
        line = f"{record['model']:<15}"
        if record["folds_ok"] == 0:
            lines.append(f"{line} {next(iter(record['notes']))}"[:110])
            continue
        line += "".join(f"{_cell(name, record, best.get(name, [])):>14}" for name in metrics)
        for name, (_, digits) in TIMES.items():
            line += f"{record['median'][name]:>12.{digits}f}"
        lines.append(line)
    if comparison.ended_early:
        fits = f"{len(comparison.fold_scores)} of {comparison.num_fits}"
        lines.append(f"  ended early, after {fits} fits")
    return "\n".join(lines + _footnotes(records))


def verdicts(comparison: Comparison) -> list[str]:
    """:return: a sentence for each pair of models; empty if the comparison ended early."""
    held = contests(comparison)
    if not held or comparison.ended_early:
        return []
    records = summary(comparison.fold_scores)
    seconds = {one["model"]: one["median"]["train_seconds"] for one in records}
    labels = {name: metric.label for name, metric in comparison.metrics.items()}
    names = [name for name in comparison.held_out if name in held[0].losses]
    return [
        f"{one} is {_verdict(held, one, other, labels)}; "
        f"its fit takes {_times(seconds[one] / seconds[other])} as long."
        for one, other in combinations(names, 2)
    ]


def _times(ratio: float) -> str:
    return f"{ratio:.1f} times" if ratio >= 0.95 else f"{ratio:.2g} times"


def _verdict(held: Sequence[Contest], one: str, other: str, labels: dict[str, str]) -> str:
    """:return: a verdict such as "better than svc in NLL, level in error and Brier"."""
    parts = list[str]()
    for word, than in (("better", "than"), ("worse", "than"), ("level", "with")):
        if scores := [labels[each.score] for each in held if each.verdict(one, other) == word]:
            name = "" if parts else f" {than} {other}"
            several = ", ".join(scores[:-1]) + " and " if scores[1:] else ""
            parts.append(f"{word}{name} in {several}{scores[-1]}")
    return ", ".join(parts)


def seconds_of_peers(comparison: Comparison) -> float:
    """:return: the training time of the slowest of `PEERS`, with tracing; 0 if there are none."""
    good = [score for score in comparison.fold_scores if score.ok]
    return max(sum(one.train_seconds for one in good if one.model == peer) for peer in PEERS)


def _title(comparison: Comparison) -> str:
    settings = comparison.settings
    C = len(comparison.labels)
    (N, D) = comparison.dataset.X.shape
    kernel = settings.kernel(D)
    fixed = f"fixed at lengthscale {kernel.lengthscale:.3g}, variance {kernel.variance:.3g}"
    has_M = any(score.model not in WITHOUT_M for score in comparison.fold_scores)
    M = f"M = {min(settings.num_inducing, round(N * (1 - 1 / settings.folds)))}, " if has_M else ""
    return (
        f"{comparison.dataset.name}: N = {N}, D = {D}, {f'C = {C}, ' if C > 2 else ''}"
        f"{settings.folds} folds, {M}kernel {'learned' if kernel.learn else fixed}"
    )


def _cell(name: str, record: dict[str, Any], best: Sequence[str]) -> str:
    """:return: "mean ± std", with a star for the best."""
    mean = record["mean"][name]
    if mean is None:
        return "-  "
    spread = "" if record["std"][name] is None else f"±{record['std'][name]:.3f}"
    return f"{mean:.3f}{spread}{'*' if record['model'] in best else ' '}"


def _footnotes(records: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"  {record['model']}, {count} of {record['folds']} folds: {note.removeprefix('ok: ')}"
        for record in records
        for note, count in record["notes"].items()
        if record["folds_ok"]
    ]
    gains = [(one["model"], one["last_gain"]) for one in records if one["last_gain"] is not None]
    if gains:
        ends = ", ".join(f"{model} {gain:.0e}" for model, gain in gains)
        lines.append(f"  largest relative rise of the bound at the end of a fit: {ends}")
    return [line[:110] for line in lines]


def write(comparisons: Sequence[Comparison], directory: Path, pictures: Sequence[str] = ()) -> None:
    """
    Write results.csv (one row per data set, model and fold) and results.json (summary, settings,
    provenance). Remove pictures of earlier results.

    :param pictures: names of the pictures of these results.
    :raise OSError: if the directory is gone or the disk is full.
    """
    old = list[str]()
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # missing or invalid file
        old = json.loads((directory / "results.json").read_text())["pictures"]
    scores = [score for comparison in comparisons for score in comparison.fold_scores]
    with whole_file(directory / "results.csv") as file:
        file.write(frame(scores).to_csv(index=False).encode())
    record = {
        "settings": asdict(comparisons[0].settings) if comparisons else {},
        "provenance": provenance(),
        "summary": summary(scores),
        "pictures": list(pictures),
    }
    with whole_file(directory / "results.json") as file:
        file.write((json.dumps(record, indent=2) + "\n").encode())
    for name in old:
        if name not in pictures and re.fullmatch(r"[A-Za-z0-9._-]+\.png", str(name)):
            (directory / name).unlink(missing_ok=True)


def picture_name(dataset: Dataset) -> str:
    """:return: a file name that is valid on all systems."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", dataset.name) + ".png"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
