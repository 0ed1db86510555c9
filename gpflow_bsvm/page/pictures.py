"""Pictures of a comparison as SVG inside of a page, in the page's own colours and type."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import plotting
from ..compare.protocol import Comparison
from ..compare.report import draw_times
from ..metrics import METRICS
from ..optional import require
from ..plotting.scores import time_axis
from .contests import Contest, contest, mean_ranks
from .markup import Markup, element

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Colours that stand for those of the page, which has light and dark ones.
_INK, _FAINT = "#010203", "#040506"
_SERIES = [f"#0a0b{number:02x}" for number in range(1, 9)]
_COLORS = {_INK: "--ink", _FAINT: "--faint"}
_COLORS |= {color: f"--series-{number}" for number, color in enumerate(_SERIES, 1)}

_THEME: dict[str, Any] = {
    **dict.fromkeys(
        ["text.color", "axes.labelcolor", "ytick.labelcolor", "xtick.labelcolor"], _INK
    ),
    **dict.fromkeys(["axes.edgecolor", "xtick.color", "ytick.color", "grid.color"], _FAINT),
    **dict.fromkeys(["axes.facecolor", "figure.facecolor", "savefig.facecolor"], "none"),
    **dict.fromkeys(["axes.spines.top", "axes.spines.right"], False),
    "font.size": 9,
    "axes.titlesize": 9,
    "svg.fonttype": "none",  # letters stay letters, in the reader's font
    "text.parse_math": False,  # a label may hold dollar signs
}


class Gallery:
    """
    Makes pictures, each with names of its own, so that many fit into a page.

    :raise ImportError: without matplotlib.
    """

    def __init__(self, models: Sequence[str]) -> None:
        """:param models: of all data sets: each keeps its colour."""
        self._mpl, self._number = require("matplotlib"), 0
        self._colors = {name: _SERIES[n % len(_SERIES)] for n, name in enumerate(models)}

    def of(self, comparison: Comparison) -> list[Markup]:
        """:return: pictures of one data set: scores, time, curves, confusion, reliability."""
        parts = (self._scores, self._times, self._curves, self._confusion, self._reliability)
        return [picture for part in parts for picture in part(comparison)]

    def ranks(self, comparisons: Sequence[Comparison], score: str) -> list[Markup]:
        """:return: mean ranks over data sets, or nothing where there are none."""
        found = mean_ranks(comparisons, score)
        if found is None:
            return []

        def draw(ax: Axes) -> None:
            label = METRICS[score].label
            plotting.score_dots(ax, found.means, what=f"mean rank in {label}", colors=self._colors)
            first = min(found.means.values())
            last = first + found.critical_difference
            ax.axvspan(first, last, color=_FAINT, alpha=0.3, linewidth=0, zorder=0)
            ax.set_xlim(0.8, max(len(found.means), last) + 0.2)

        text = (
            f"Mean rank in {METRICS[score].label} over {found.num_sets} data sets, 1 is best. "
            "Nemenyi's test does not tell those in the shade apart from the first."
        )
        return [self._picture(draw, text, _lines(len(found.means)))]

    def _scores(self, comparison: Comparison) -> Iterator[Markup]:
        for held in filter(
            None, (contest(comparison, score) for score in ("nll", "error", "brier"))
        ):
            yield self._picture(
                partial(self._dots, comparison, held),
                f"{_name(held.score)}, less is better; small marks are folds.",
                _lines(len(held.losses)),
            )

    def _dots(self, comparison: Comparison, held: Contest, ax: Axes) -> None:
        """Each model of a contest, in the order of the tables."""
        ranked = [name for name in comparison.held_out if name in held.losses]
        good = [row for row in comparison.fold_scores if row.ok]
        plotting.score_dots(
            ax,
            {name: held.losses[name].mean for name in ranked},
            {m: [row.scores[held.score] for row in good if row.model == m] for m in ranked},
            {name: (held.losses[name].low, held.losses[name].high) for name in ranked},
            what=f"{METRICS[held.score].label} [{METRICS[held.score].unit}]",
            colors=self._colors,
        )

    def _times(self, comparison: Comparison) -> Iterator[Markup]:
        seconds = {name: comparison.train_seconds(name) for name in comparison.held_out}
        if not seconds:
            return

        def draw(ax: Axes) -> None:
            middle = {name: float(np.median(own)) for name, own in seconds.items()}
            plotting.score_dots(ax, middle, seconds, colors=self._colors)
            time_axis(ax)

        text = "Training time of folds after the first; the large mark is the median."
        yield self._picture(draw, text, _lines(len(seconds)))

    def _reliability(self, comparison: Comparison) -> Iterator[Markup]:
        labels = comparison.labels
        predicted = f"predicted p({labels[1]!s})" if len(labels) == 2 else "largest probability"
        for model in comparison.held_out:
            y, P = comparison.predictions(model)

            def draw(ax: Axes, model: str = model, y: Any = y, P: Any = P) -> None:
                plotting.reliability_diagram(ax, y, P, color=self._colors[model])
                ax.set(title=model, aspect="equal", xlabel=predicted)

            yield self._picture(draw, f"Reliability of {model}.", (3.2, 3.35), kind="small")

    def _confusion(self, comparison: Comparison) -> Iterator[Markup]:
        if len(comparison.labels) < 3 or (held := contest(comparison, "nll")) is None:
            return
        model = held.best
        y, P = comparison.predictions(model)

        def draw(ax: Axes) -> None:
            plotting.confusion_matrix(ax, y, P, comparison.labels)
            ax.set_title("")

        side = 3.2 if len(comparison.labels) <= plotting.MOST_NUMBERS else 5.0
        text = f"Confusion of {model}: per cent of the true class (down) taken for each (across)."
        yield self._picture(draw, text, (side, side), kind="small" if side < 4 else None)

    def _curves(self, comparison: Comparison) -> Iterator[Markup]:
        for score in ("error", "nll") if comparison.traces else ():

            def draw(ax: Axes, score: str = score) -> None:
                for model in comparison.held_out:
                    style = {"color": self._colors[model], "label": model}
                    draw_times({score: ax}, comparison, model, style)
                ax.set_title("")
                ax.legend(frameon=False, fontsize="small")

            text = f"{_name(score)} on the first fold against training time."
            yield self._picture(draw, text, (4.4, 3.4))

    def _picture(
        self,
        draw: Callable[[Axes], None],
        text: str,
        size: tuple[float, float],
        kind: str | None = None,
    ) -> Markup:
        """:return: a figure with its caption, which is what a screen reader reads, too."""
        self._number += 1
        buffer = io.StringIO()
        with self._mpl.rc_context(_THEME | {"svg.hashsalt": str(self._number)}):
            fig, (ax,) = plotting.figure(1, 1, width=size[0], height=size[1])
            draw(ax)
            fig.savefig(buffer, format="svg", metadata={"Date": None})
        svg = _inside(buffer.getvalue(), f"p{self._number}-", text)
        return element("figure", svg, element("figcaption", text), class_=kind)


def _inside(svg: str, prefix: str, label: str) -> Markup:
    """:return: the `<svg>` element alone, in the page's colours, its names made unique."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    svg = re.sub(r'(\sid="|url\(#|href="#)', rf"\g<1>{prefix}", svg)
    for color, name in _COLORS.items():
        svg = svg.replace(color, f"var({name})")
    size = re.search(r'viewBox="([^"]*)"', svg)
    assert size is not None
    opened = element("svg", viewBox=size[1], role="img", aria_label=label).removesuffix("</svg>")
    return Markup(opened + svg[svg.index(">") + 1 :].strip())


def _name(score: str) -> str:
    label = METRICS[score].label
    return label[:1].upper() + label[1:]


def _lines(number: int) -> tuple[float, float]:
    return 4.4, 0.75 + 0.3 * number
