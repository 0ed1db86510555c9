"""Pictures of a comparison: reliability, and scores against training time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay

from .. import plotting
from .protocol import Comparison
from .regression import LEVELS
from .report import summary

if TYPE_CHECKING:  # an extra
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Limits of a confusion matrix: the most classes with printed numbers, the longest class name.
_MOST_NUMBERS = 12
_LONGEST_NAME = 12
#: The longest name of a data set in a title.
_LONGEST_TITLE = 60
#: Scores drawn against training time.
_DRAWN = {"classification": ("error", "nll"), "regression": ("mse", "nll")}


def draw(comparison: Comparison, path: Path | IO[bytes]) -> Figure:
    """
    Write a picture with three parts: reliability on all held-out rows; for the first model, the
    confusion matrix (if C > 2) or predictions against true numbers; and two scores, with standard
    deviations over folds, against training time.

    :return: the figure.
    :raise ImportError: if matplotlib is missing.
    """
    C = len(comparison.labels)
    records = summary(comparison.fold_scores)
    fig, axes = plotting.figure(1, 3) if C == 2 else plotting.figure(2, 2)
    if C != 2:
        second = _draw_confusion if C else _draw_numbers
        second(axes[1], comparison, next(iter(comparison.held_out)))
    for number, record in enumerate(one for one in records if one["folds_ok"]):
        style: dict[str, Any] = {"label": record["model"], "color": f"C{number}"}
        _draw_times(axes[-2:], comparison, record, style)
        style["linestyle"] = ("-", "--", ":", "-.")[number % 4]
        reliability = plotting.reliability_diagram if C else _draw_shares
        y, P = comparison.predictions(record["model"])
        reliability(axes[0], y, P, **style)
    for ax in axes[-2:]:
        _mark_seconds(ax)
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    name = shown(comparison.dataset.name, _LONGEST_TITLE)
    fig.suptitle(f"{name}: {comparison.settings.folds} folds; bars show deviations over folds")
    fig.savefig(path, dpi=130)
    return fig


def shown(text: str, most: int) -> str:
    """:return: a user's string, shortened, with $ escaped (it starts a formula in Matplotlib)."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return cut.replace("$", r"\$")


def _draw_confusion(ax: Axes, comparison: Comparison, model: str) -> None:
    """Draw the confusion matrix: true classes down, predicted classes across."""
    y, P = comparison.predictions(model)
    few = len(comparison.labels) <= _MOST_NUMBERS
    names = list(map(str, comparison.labels))
    ConfusionMatrixDisplay.from_predictions(
        y,
        P.argmax(axis=1),
        labels=np.arange(len(names)),
        display_labels=[shown(name, _LONGEST_NAME) for name in names],
        normalize="true",
        include_values=few,
        values_format=".0%",
        text_kw={"size": 7},
        cmap="Blues",
        colorbar=False,
        xticks_rotation=45.0 if max(map(len, names)) > 3 else 0.0,
        ax=ax,
    )
    for tick in ax.get_xticklabels():
        tick.set(ha="right" if tick.get_rotation() else "center", rotation_mode="anchor")
    ax.set_title(f"Confusion: {model}")


def _draw_numbers(ax: Axes, comparison: Comparison, model: str) -> None:
    y, P = comparison.predictions(model)
    ax.vlines(y, P[:, 2], P[:, -1], color="0.8", linewidth=0.8, zorder=0)
    ax.plot(y, P[:, 0], ".", markersize=4, alpha=0.6)
    ax.axline((0, 0), slope=1, color="0.5", linewidth=1)
    ax.set(xlabel="true y, standardized", ylabel="predicted y")
    ax.set_title(f"{model}, with intervals of 90 %")


def _draw_shares(ax: Axes, y: Any, P: Any, **style: Any) -> None:
    if not ax.lines:
        ax.axline((0, 0), slope=1, color="0.7", linewidth=1, zorder=0)
    ax.plot(LEVELS, (y[:, None] <= P[:, 2:]).mean(axis=0), marker=".", alpha=0.8, **style)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), title="Reliability of quantiles")
    ax.set(xlabel="level of the quantile", ylabel="share of labels below it")


def _draw_times(
    axes: Any, comparison: Comparison, record: dict[str, Any], style: dict[str, Any]
) -> None:
    seconds = record["median"]["train_seconds"]
    for name, ax in zip(_DRAWN[comparison.settings.task], axes):
        mean = record["mean"][name]
        spread = record["std"][name]
        label = comparison.metrics[name].label
        ax.errorbar(seconds, mean, spread, marker="D", markersize=7, capsize=4, alpha=0.8, **style)
        ax.set(ylabel=f"held-out {label}", title=f"Held-out {label} against training time")
        ax.set(xscale="log", xlabel="seconds of a fit")


def _mark_seconds(ax: Axes) -> None:
    """Set ticks at 1, 2 and 5 times powers of ten or, if these are too many, at powers of ten."""
    low, high = ax.dataLim.intervalx * (0.95, 1.05)
    powers = np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = np.outer(10.0**powers, (1, 2, 5) if high < 200 * low else (1,)).ravel()
    first = np.searchsorted(ticks, low, "right") - 1
    ticks = ticks[first : np.searchsorted(ticks, high) + 1]
    ax.set(xlim=(ticks[0], ticks[-1]))
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)
