"""Figures without a display."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..optional import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
