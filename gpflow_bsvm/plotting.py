"""Pictures of predictions, drawn on given axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gpflow.base import AnyNDArray

from . import metrics
from .checks import check_whole
from .optional import require

if TYPE_CHECKING:  # an extra
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["reliability_diagram"]

#: Curves are transparent because they often overlap.
_LINE: dict[str, Any] = {"linewidth": 1.4, "alpha": 0.8}
#: Bins of a reliability diagram, of equal width.
RELIABILITY_BINS = 10
#: Bins with fewer rows than this are not drawn.
_FEWEST_ROWS = 5


def figure(
    num_rows: int, num_columns: int, *, width: float = 5.2, height: float = 3.9
) -> tuple[Figure, list[Axes]]:
    """
    :return: a figure and its axes, row by row; the figure needs no display.
    :raise ImportError: if matplotlib is missing.
    """
    fig = require("matplotlib.figure").Figure(
        figsize=(width * num_columns, height * num_rows), layout="constrained"
    )
    return fig, list(fig.subplots(num_rows, num_columns, squeeze=False).flat)


def reliability_diagram(
    ax: Axes, y: AnyNDArray, p: AnyNDArray, *, bins: int = RELIABILITY_BINS, **style: Any
) -> Axes:
    """
    For each bin, plot the observed frequency of a class against its mean predicted probability.
    With two classes, the class is 1; with more, it is the most probable class, whose probability is
    the confidence. Predictions on the diagonal are calibrated. The area of a dot grows with the
    number of rows in its bin; bins with fewer than 5 rows are left out.

    :param y: [N] in 0..C-1; p: [N, C], or [N] for two classes: p(y = 1).
    :param style: Matplotlib's options for the line, such as `label`.
    :raise ValueError: as in `gpflow_bsvm.metrics.evaluate`, or for fewer bins than 1.
    """
    check_whole(1, bins=bins)
    y, P = metrics.check_probabilities(y, p)
    p = P[:, 1]
    names = ("predicted p(y = 1)", "observed frequency of y = 1")
    if P.shape[1] > 2:
        y = P.argmax(axis=1) == y
        p = P.max(axis=1)
        names = ("confidence, max p", "accuracy")
    bin_of = np.minimum((p * bins).astype(int), bins - 1)
    count = np.bincount(bin_of, minlength=bins)
    kept = np.flatnonzero(count >= _FEWEST_ROWS)
    predicted = np.array([p[bin_of == b].mean() for b in kept])
    observed = np.array([y[bin_of == b].mean() for b in kept])
    if not ax.lines:
        ax.axline((0, 0), slope=1, color="0.7", linewidth=1, zorder=0)
    (line,) = ax.plot(predicted, observed, **_LINE | style)
    area = 10 + 150 * count[kept] / len(p)
    ax.scatter(predicted, observed, s=area, color=line.get_color(), alpha=0.7, linewidths=0)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), title="Reliability")
    ax.set(xlabel=names[0], ylabel=names[1])
    return ax
