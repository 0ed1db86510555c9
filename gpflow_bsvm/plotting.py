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


def figure(num_axes: int, *, width: float = 4.6, height: float = 4.0) -> tuple[Figure, list[Axes]]:
    """
    :return: a figure and its axes in one row; no display is needed.
    :raise ImportError: without matplotlib.
    """
    require("matplotlib")
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width * num_axes, height), layout="constrained")
    return fig, list(fig.subplots(1, num_axes, squeeze=False)[0])


def reliability_diagram(
    ax: Axes, y: AnyNDArray, p: AnyNDArray, *, bins: int = RELIABILITY_BINS, **style: Any
) -> Axes:
    """
    Observed frequency of class 1 against mean predicted p(y = 1), bin by bin; on the diagonal a
    prediction can be taken at its word. Bins with fewer than 5 rows are left out.

    :param y: [N] in {0, 1}; p: [N].
    :param style: of the line, such as `label`.
    """
    y, p = np.asarray(y), np.asarray(p)
    bin_of = np.minimum((p * bins).astype(int), bins - 1)
    kept = [b for b in range(bins) if np.count_nonzero(bin_of == b) >= _FEWEST_ROWS]
    predicted = [p[bin_of == b].mean() for b in kept]
    observed = [y[bin_of == b].mean() for b in kept]
    if not ax.lines:
        ax.axline((0, 0), slope=1, color="0.7", linewidth=1, zorder=0)
    ax.plot(predicted, observed, **{"marker": "o", "markersize": 4, "linewidth": 1.2} | style)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), title="Reliability")
    ax.set(xlabel="predicted p(y = 1)", ylabel="observed frequency")
    return ax


def error_against_time(
    ax: Axes, seconds: AnyNDArray | list[float], error: AnyNDArray | list[float], **style: Any
) -> Axes:
    """
    Held-out error after so many seconds of training; a single point for a model without a trace.

    :param seconds: [T], positive; error: [T], fractions.
    :param style: of the line, such as `label`.
    """
    point = len(seconds) == 1
    defaults = {"marker": "D" if point else "o", "markersize": 6 if point else 3, "linewidth": 1.2}
    ax.plot(seconds, error, **defaults | style)
    ax.set(xscale="log", xlabel="training time [s]", ylabel="held-out error")
    ax.set(title="Error against training time")
    return ax


def elbo_trace(
    ax: Axes,
    seconds: AnyNDArray | list[float],
    elbo: AnyNDArray | list[float],
    num_data: int,
    **style: Any,
) -> Axes:
    """
    How far the ELBO is from where it ended, per row, against training time. ELBOs of different
    likelihoods cannot be compared, the way to their end can; the last step has no distance and is
    not drawn.

    :param seconds: [T]; elbo: [T]; num_data: N.
    :param style: of the line, such as `label`.
    """
    elbo = np.asarray(elbo, float)
    gap = (elbo.max() - elbo) / num_data
    shown = gap > 0
    defaults: dict[str, Any] = {"marker": "o", "markersize": 3, "linewidth": 1.2}
    ax.plot(np.asarray(seconds)[shown], gap[shown], **defaults | style)
    ax.set(xscale="log", yscale="log", xlabel="training time [s]", title="Way to the final ELBO")
    ax.set(ylabel="final ELBO - ELBO [nats per row]")
    return ax
