"""Plots of a fit's history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..inference.history import History
from .figures import LINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Most entries of a vector that get a colour each.
_MOST_COLOURS = 6


def bound_trace(ax: Axes, history: History, **style: Any) -> Axes:
    """
    The bound that the fit maximizes after each recorded step, `history.elbo` against
    `history.step`: of `VEM` with the log prior of the hyperparameters, of `SVI` an estimate.

    :param style: of the line, such as `label`.
    """
    ax.plot(history.step, history.elbo, **LINE | style)
    ax.set(xlabel="step", ylabel="bound [nats]", title="Bound")
    return ax


def hyperparameter_trace(
    ax: Axes, history: History, names: Sequence[str] | None = None, **style: Any
) -> Axes:
    """
    The hyperparameters after each recorded step: a line for each entry, with its own colour and
    legend entry (a common one for more than 6 entries). The axis is logarithmic where all values
    are positive.

    :param names: as in `history.hyperparameters`; None: all but matrices such as inducing points.
    :param style: of the lines, such as `linestyle`.
    :raise ValueError: for a fit that learned none, or unknown names.
    """
    learned = history.hyperparameters
    small = [name for name, values in learned.items() if np.ndim(values[0]) < 2]
    names = small if names is None else names
    if not names or not set(names) <= set(learned):
        raise ValueError(
            f"names must be some of {list(learned)}, got {list(names)}; they are learned by "
            "algorithms such as gpflow_bsvm.inference.VEM"
        )
    for name in names:
        values = np.reshape(learned[name], (len(history), -1))
        _plot_entries(ax, history.step, values, name.removeprefix("."), **style)
    positive = all(np.min(line.get_ydata()) > 0 for line in ax.lines)
    ax.set(xlabel="step", ylabel="value", yscale="log" if positive else "linear")
    ax.set(title="Hyperparameters")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _plot_entries(ax: Axes, step: Any, values: Any, name: str, **style: Any) -> None:
    """Lines of values [T, number of entries]."""
    number = values.shape[1]
    look = LINE | ({"linewidth": 0.7, "markersize": 1.5} if number > 1 else {})
    if 1 < number <= _MOST_COLOURS:
        ax.plot(step, values, label=[f"{name}[{n}]" for n in range(number)], **look | style)
        return
    (first, *_) = ax.plot(step, values[:, :1], label=name, **look | style)
    ax.plot(step, values[:, 1:], color=first.get_color(), **look | style)
