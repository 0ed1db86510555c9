"""A comparison as one self-contained HTML file without scripts."""

from __future__ import annotations

import base64
import datetime
import io
import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..optional import require
from .machine import provenance
from .pictures import draw
from .protocol import Comparison
from .registry import BASELINES, WITHOUT_M
from .report import LEVEL, TIMES, Interval, contests, summary, verdicts

#: Largest number of classes listed by name.
_MOST_CLASSES = 12


def page(comparisons: Sequence[Comparison], *, command: str = "", pictures: bool = True) -> str:
    """
    :param comparisons: comparisons in page order, even those that an interrupt prevented.
    :param command: the command that ran them, shown on the page.
    :param pictures: whether to draw pictures, which needs Matplotlib.
    :return: the page.
    :raise ValueError: if no comparison has a score.
    :raise ImportError: if jinja2 is missing or, for pictures, Matplotlib.
    """
    shown = [one for one in comparisons if one.fold_scores]
    if not shown:
        raise ValueError("there is nothing to report: no model was fitted to any fold")
    ran = dict.fromkeys(score.model for one in shown for score in one.fold_scores)
    methods = {name: BASELINES[name].description for name in ran if name in BASELINES}
    text: str = _template().render(
        sets=[_one_set(one, pictures) for one in shown],
        comparisons=comparisons,
        wins=_wins(shown),
        command=command,
        today=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        settings=asdict(shown[0].settings),
        methods=methods,
        has_M=not {*methods} <= {*WITHOUT_M},
        provenance=provenance(),
        metrics=shown[0].metrics,
        losses=shown[0].losses,
        times=TIMES,
        level=f"{100 * LEVEL:g} %",
    )
    return text


def _template() -> Any:
    jinja = require("jinja2")
    loader = jinja.FileSystemLoader(Path(__file__).parent)
    environment = jinja.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["rounded"] = rounded
    return environment.get_template("page.html")


def _one_set(comparison: Comparison, pictures: bool) -> dict[str, Any]:
    dataset = comparison.dataset
    held = contests(comparison)
    drawn = io.BytesIO()
    if pictures and comparison.held_out:
        draw(comparison, drawn)
    counts = [(label, int((dataset.y == label).sum())) for label in comparison.labels]
    return {
        "name": dataset.name,
        "shape": dataset.X.shape,
        "classes": counts[:_MOST_CLASSES],
        "more_classes": max(0, len(counts) - _MOST_CLASSES),
        "notes": dataset.notes,
        "records": summary(comparison.fold_scores),
        "leaders": {one.score: one.leaders for one in held},
        "contests": held,
        "verdicts": verdicts(comparison),
        "picture": base64.b64encode(drawn.getvalue()).decode(),
    }


def _wins(shown: Sequence[Comparison]) -> list[tuple[str, list[tuple[int, int]]]]:
    """
    :return: the number of sets on which no model is better, for each model and loss, and the number
        of all sets; empty for a single set.
    """
    if len(shown) < 2:
        return []
    sets = [found for one in shown if (found := contests(one))]
    wins = {name: dict.fromkeys(shown[0].losses, 0) for found in sets for name in found[0].losses}
    for contest in itertools.chain.from_iterable(sets):
        for name in contest.leaders:
            wins[name][contest.score] += 1
    total = {name: sum(own.values()) for name, own in wins.items()}
    order = sorted(wins, key=total.__getitem__, reverse=True)
    return [(name, [(won, len(sets)) for won in wins[name].values()]) for name in order]


def rounded(found: Interval) -> str:
    """
    :return: "mean [low, high]" with three decimals, or with more if one of the numbers needs more
        for its first digit.
    """
    smallest = min((abs(value) for value in found if value), default=1.0)
    decimals = max(3, -math.floor(math.log10(smallest)))
    mean, low, high = (f"{value:.{decimals}f}" for value in found)
    return f"{mean} [{low}, {high}]"
