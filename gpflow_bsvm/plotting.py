"""Pictures of classifiers, drawn into the axes that they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gpflow.base import AnyNDArray

from .extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Bins of a reliability diagram, of equal width.
RELIABILITY_BINS = 10
#: A bin with fewer rows than this says too little to be drawn.
_FEWEST_ROWS = 5
#: Curves often lie on each other: let them shine through.
_LINE: dict[str, Any] = {"marker": "o", "markersize": 3, "linewidth": 1.4, "alpha": 0.8}


def figure(
    num_rows: int, num_columns: int, *, width: float = 5.2, height: float = 3.9
) -> tuple[Figure, list[Axes]]:
    """
    :return: a figure and its axes, row by row; no display is needed.
    :raise ImportError: without matplotlib.
    """
    require("matplotlib")
    from matplotlib.figure import Figure

    size = (width * num_columns, height * num_rows)
    fig = Figure(figsize=size, layout="constrained")
    return fig, list(fig.subplots(num_rows, num_columns, squeeze=False).flat)


def reliability_diagram(
    ax: Axes, y: AnyNDArray, p: AnyNDArray, *, bins: int = RELIABILITY_BINS, **style: Any
) -> Axes:
    """
    Observed frequency of class 1 against mean predicted p(y = 1), bin by bin; on the diagonal a
    prediction can be taken at its word. The area of a dot grows with the number of rows in its
    bin; bins with fewer than 5 are left out.

    :param y: [N] in {0, 1}; p: [N].
    :param style: of the line, such as `label`.
    """
    y, p = np.asarray(y), np.asarray(p)
    bin_of = np.minimum((p * bins).astype(int), bins - 1)
    count = np.bincount(bin_of, minlength=bins)
    kept = np.flatnonzero(count >= _FEWEST_ROWS)
    predicted = np.array([p[bin_of == b].mean() for b in kept])
    observed = np.array([y[bin_of == b].mean() for b in kept])
    if not ax.lines:
        ax.axline((0, 0), slope=1, color="0.7", linewidth=1, zorder=0)
    (line,) = ax.plot(predicted, observed, **_LINE | {"marker": None} | style)
    area = 10 + 150 * count[kept] / len(p)
    ax.scatter(predicted, observed, s=area, color=line.get_color(), alpha=0.7, linewidths=0)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), title="Reliability")
    ax.set(xlabel="predicted p(y = 1)", ylabel="observed frequency of y = 1")
    return ax


def error_against_time(
    ax: Axes,
    seconds: AnyNDArray | list[float],
    error: AnyNDArray | list[float],
    *,
    what: str = "error",
    **style: Any,
) -> Axes:
    """
    Held-out error (or another score) after so many seconds of training; a single large mark for a
    model without a trace.

    :param seconds: [T], positive; error: [T].
    :param what: the score's name.
    :param style: of the line, such as `label`.
    """
    point = {"marker": "D", "markersize": 7} if len(seconds) == 1 else {}
    ax.plot(seconds, error, **_LINE | point | style)
    ax.set(xscale="log", xlabel="training time [s]", ylabel=f"held-out {what}")
    ax.set(title=f"Held-out {what} against training time")
    return ax


def elbo_trace(
    ax: Axes,
    seconds: AnyNDArray | list[float],
    elbo: AnyNDArray | list[float],
    num_data: int,
    **style: Any,
) -> Axes:
    """
    How far the ELBO is from the best of its trace, per row, against training time. ELBOs of
    different likelihoods cannot be compared, the way to their end can; the best step has no
    distance and is not drawn.

    :param seconds: [T]; elbo: [T]; num_data: N.
    :param style: of the line, such as `label`.
    """
    elbo = np.asarray(elbo, float)
    gap = (elbo.max() - elbo) / num_data
    shown = gap > 0
    ax.plot(np.asarray(seconds)[shown], gap[shown], **_LINE | style)
    ax.set(xscale="log", yscale="log", xlabel="training time [s]")
    ax.set(title="ELBO: what is left to gain", ylabel="best ELBO - ELBO [nats per row]")
    return ax
